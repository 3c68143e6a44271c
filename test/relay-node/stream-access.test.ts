/** The stream ids that the gate admits and refuses. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findObjection, parseStreamId } from '../../relay-node/stream-access.ts'

const token = 'Ab12Cd34'

describe('the owner', () => {
  test.each([
    `publish/live/${token}`,
    `#!::r=live/${token},m=publish`,
    `#!::m=publish,r=${token}`,
    `#!::r=publish/live/${token},m=publish,u=phone,s=1`,
  ])('publishes with %s', (streamId) => expect(findObjection('publish', streamId, token)).toBeUndefined())

  test.each([
    `play/live/${token}`,
    `#!::r=live/${token},m=request`,
    `#!::r=${token}`,
    `#!::r=play/live/${token},m=request`,
  ])('plays with %s', (streamId) => expect(findObjection('play', streamId, token)).toBeUndefined())

  test.each([
    ['publish', `play/live/${token}`],
    ['publish', `#!::r=live/${token},m=request`],
    ['play', `publish/live/${token}`],
  ] as const)('is refused on the %s port with %s', (role, streamId) =>
    expect(findObjection(role, streamId, token)).toBe('bad_mode'),
  )
})

describe('a caller is refused', () => {
  test.each([
    ['without a stream id', undefined],
    ['with an empty one', ''],
    ['with the token of another user', 'publish/live/Zz99Yy88'],
    ['with the token in another case', `publish/live/${token.toLowerCase()}`],
    ['with a part of the token', `publish/live/${token.slice(0, 7)}`],
    ['with more than the token', `publish/live/${token}x`],
    ['with the token alone', token],
    ['with another application', `publish/other/${token}`],
    ['with a longer path', `publish/live/x/${token}`],
    ['with a contradiction', `#!::r=play/live/${token},m=publish`],
    ['with a repeated key', `#!::r=live/${token},m=request,m=publish`],
    ['with both directions', `#!::r=live/${token},m=bidirectional`],
    ['with a nested form', `#!:{r=live/${token},m=publish}`],
    ['with a field without a value', `#!::r=live/${token},m`],
  ])('%s', (_, streamId) => expect(findObjection('publish', streamId, token)).toBe('unauthorized'))
})

test('no text is admitted without the token', () => {
  const part = fc.constantFrom('publish', 'play', 'live', '/', '#!::', 'r=', 'm=', ',', '=', 'request', 'Ab12', 'x')
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(part).map((parts) => parts.join('')),
      ),
      (text) => {
        fc.pre(!text.includes(token))
        expect(findObjection('publish', text, token)).toBeDefined()
        expect(findObjection('play', text, token)).toBeDefined()
        parseStreamId(text)
      },
    ),
    { numRuns: 2_000 },
  )
})
