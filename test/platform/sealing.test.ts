/** The encryption of stored texts, bound to their place, with rotated keys. */
import { createHmac, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSealing, openedMax } from '../../platform/sealing.ts'

const keyNamed = (id: string) => ({ id, key: randomBytes(32).toString('base64') })

const place = ['0198c1f0-user', 'twitch', 'access_token']
const [old, current] = [keyNamed('2025'), keyNamed('2026')]
const sealing = createSealing([current])

/** The sealed text with one of its parts changed: version, key, nonce, text, tag. */
const withPart = (sealed: string, at: number, change: (part: string) => string) =>
  sealed
    .split('.')
    .map((part, index) => (index === at ? change(part) : part))
    .join('.')

const flipBit = (bit: number) => (part: string) => {
  const bytes = Buffer.from(part, 'base64url')
  const at = bit % (bytes.length * 8)
  bytes.writeUInt8(bytes.readUInt8(at >> 3) ^ (1 << (at & 7)), at >> 3)
  return bytes.toString('base64url')
}

test('any text can be opened at its own place, and is unreadable before', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.string()), (text, where) => {
      const sealed = sealing.seal(text, where)
      expect(sealing.open(sealed, where)).toEqual({ text, isStale: false })
      if (text.length >= 8) expect(sealed).not.toContain(text)
    }),
  )
})

test('a text that is opened often can be opened at its own place only, the first time and later', () => {
  const sealed = sealing.seal('token', place)
  for (let time = 0; time < 2; time += 1) {
    expect(sealing.openOften(sealed, place)).toBe('token')
    expect(() => sealing.openOften(sealed, [...place.slice(0, 2), 'refresh_token'])).toThrow()
    expect(() => sealing.openOften(sealed, place.slice(0, 2))).toThrow()
    expect(() => sealing.openOften(withPart(sealed, 3, flipBit(time)), place)).toThrow()
  }
})

test('texts are opened also when more of them are read than are kept', () => {
  const sealed = Array.from({ length: openedMax + 10 }, (_, index) => sealing.seal(String(index), place))
  for (const [index, text] of sealed.entries()) expect(sealing.openOften(text, place)).toBe(String(index))
  expect(sealing.openOften(sealed[0] ?? '', place)).toBe('0')
})

test('the same text is sealed differently each time', () => {
  const sealed = Array.from({ length: 100 }, () => sealing.seal('token', place))
  expect(new Set(sealed).size).toBe(100)
})

test('during a rotation the old key opens texts, which are reported as stale, and seals none', () => {
  const before = createSealing([old]).seal('token', place)
  const rotating = createSealing([current, old])
  expect(rotating.open(before, place)).toEqual({ text: 'token', isStale: true })
  const after = rotating.seal('token', place)
  expect(sealing.open(after, place)).toEqual({ text: 'token', isStale: false })
  expect(() => createSealing([old]).open(after, place)).toThrow('2026')
})

test('the error for a missing key has the id of the key, and neither the text nor a key', () => {
  const sealed = createSealing([old]).seal('a token', place)
  expect(() => sealing.open(sealed, place)).toThrow(
    'the text is sealed with the key 2025, which is missing from OAUTH_ENCRYPTION_KEY',
  )
})

test('another key with the same id does not open a text', () => {
  const sealed = sealing.seal('token', place)
  expect(() => createSealing([keyNamed('2026')]).open(sealed, place)).toThrow()
})

test.each([
  ['another user', ['0198c1f0-other', 'twitch', 'access_token']],
  ['another provider', ['0198c1f0-user', 'google', 'access_token']],
  ['another field', ['0198c1f0-user', 'twitch', 'refresh_token']],
  ['the same words cut elsewhere', ['0198c1f0-usertwitch', '', 'access_token']],
  ['the same words joined', ['0198c1f0-user","twitch', 'access_token']],
  ['no place', []],
])('a text that was copied to %s does not open', (_, elsewhere) => {
  const sealed = sealing.seal('token', place)
  expect(() => sealing.open(sealed, elsewhere)).toThrow()
})

test('a text with any changed bit in nonce, text or tag does not open', () => {
  const sealed = sealing.seal('a token of some length', place)
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 4 }), fc.nat(), (part, bit) => {
      const changed = withPart(sealed, part, flipBit(bit))
      expect(changed).not.toBe(sealed)
      expect(() => sealing.open(changed, place)).toThrow()
    }),
  )
})

test('a text with the id of another key does not open', () => {
  const both = createSealing([current, old])
  const sealed = both.seal('token', place)
  expect(() =>
    both.open(
      withPart(sealed, 1, () => old.id),
      place,
    ),
  ).toThrow()
})

test.each([15, 12, 4, 0])('a text with a tag of %d bytes does not open', (bytes) => {
  const sealed = withPart(sealing.seal('token', place), 4, (tag) =>
    Buffer.from(tag, 'base64url').subarray(0, bytes).toString('base64url'),
  )
  expect(() => sealing.open(sealed, place)).toThrow('the text is not sealed')
})

test.each(['', 'token', 'v1', 'v1.2026', 'v1.2026...', 'v2.2026.AAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA', '....'])(
  'a text that was never sealed does not open: "%s"',
  (text) => {
    expect(() => sealing.open(text, place)).toThrow('the text is not sealed')
  },
)

test('at least one key is required', () => {
  expect(() => createSealing([])).toThrow('no encryption key')
})

describe('the keyed hash of a text', () => {
  test('is always the same, and differs for another text, another field and another key', () => {
    const hash = sealing.hash('token', 'pair_token')
    expect(hash).toHaveLength(32)
    expect(sealing.hash('token', 'pair_token')).toEqual(hash)
    expect(createSealing([current]).hash('token', 'pair_token')).toEqual(hash)
    for (const other of [
      sealing.hash('Token', 'pair_token'),
      sealing.hash('token', 'relay_ws_token'),
      sealing.hash('pair_token', 'token'),
      createSealing([old]).hash('token', 'pair_token'),
      createHmac('sha256', Buffer.from(current.key, 'base64')).update('token').digest(),
    ])
      expect(other).not.toEqual(hash)
  })

  test('differs for every other pair of text and field', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (text, field, otherText, otherField) => {
        const isSame = sealing.hash(text, field).equals(sealing.hash(otherText, otherField))
        expect(isSame).toBe(text === otherText && field === otherField)
      }),
    )
  })

  test('by the earlier key is among the hashes during a rotation', () => {
    const [before, after] = [createSealing([old]), createSealing([current, old])]
    expect(after.hashes('token', 'f')).toEqual([after.hash('token', 'f'), before.hash('token', 'f')])
    expect(after.hash('token', 'f')).toEqual(sealing.hash('token', 'f'))
  })
})
