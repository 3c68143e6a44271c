/** The stream ids that the gate admits and refuses. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { admitPlainToken, hashPlayKey } from '../../relay-node/admission.ts'
import { judgeAccess, parseStreamId, type Role } from '../../relay-node/stream-access.ts'

const token = 'Ab12Cd34'
const playKey = 'aB3dE6gH9jK2mN5pQ8sT-_'
const admission = { ...admitPlainToken(token), playKeys: ['other', playKey, 'third'].map(hashPlayKey) }

const findObjection = (role: Role, streamId: string | undefined) => judgeAccess(role, streamId, admission).objection

describe('the owner', () => {
  test.each([
    `publish/live/${token}`,
    `#!::r=live/${token},m=publish`,
    `#!::m=publish,r=${token}`,
    `#!::r=publish/live/${token},m=publish,u=phone,s=1`,
  ])('publishes with %s', (streamId) => expect(findObjection('publish', streamId)).toBeUndefined())

  test.each([
    `play/live/${token}`,
    `#!::r=live/${token},m=request`,
    `#!::r=${token}`,
    `#!::r=play/live/${token},m=request`,
  ])('plays with %s', (streamId) => expect(findObjection('play', streamId)).toBeUndefined())

  test.each([
    ['publish', `play/live/${token}`],
    ['publish', `#!::r=live/${token},m=request`],
    ['play', `publish/live/${token}`],
  ] as const)('is refused on the %s port with %s', (role, streamId) =>
    expect(findObjection(role, streamId)).toBe('bad_mode'),
  )
})

describe('the holder of a play key', () => {
  test.each([`play/live/${playKey}`, `#!::r=live/${playKey},m=request`, `#!::r=${playKey}`])(
    'plays with %s',
    (streamId) => expect(judgeAccess('play', streamId, admission)).toEqual({ playKey: hashPlayKey(playKey) }),
  )

  test.each([
    ['publish', `publish/live/${playKey}`],
    ['publish', `#!::r=live/${playKey},m=publish`],
    ['publish', `play/live/${playKey}`],
    ['play', `publish/live/${playKey}`],
  ] as const)('never publishes: on the %s port %s is refused', (role, streamId) =>
    expect(findObjection(role, streamId)).toBe('unauthorized'),
  )

  test('is refused with a part of the key', () =>
    expect(findObjection('play', `play/live/${playKey.slice(1)}`)).toBe('unauthorized'))
})

test('the stream token publishes and does not play where players need a key', () => {
  const keysOnly = { ...admission, canTokenPlay: false }
  expect(judgeAccess('publish', `publish/live/${token}`, keysOnly)).toEqual({})
  expect(judgeAccess('play', `play/live/${token}`, keysOnly).objection).toBe('unauthorized')
  expect(judgeAccess('play', `play/live/${playKey}`, keysOnly).objection).toBeUndefined()
})

test('a relay without a session refuses everything', () =>
  expect(judgeAccess('publish', `publish/live/${token}`, undefined).objection).toBe('unauthorized'))

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
  ])('%s', (_, streamId) => expect(findObjection('publish', streamId)).toBe('unauthorized'))
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
        expect(findObjection('publish', text)).toBeDefined()
        expect(findObjection('play', text)).toBeDefined()
        parseStreamId(text)
      },
    ),
    { numRuns: 2_000 },
  )
})
