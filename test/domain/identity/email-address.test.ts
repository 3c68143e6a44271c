/** The form in which addresses are accepted and compared. */
import fc from 'fast-check'
import { expect, inject, onTestFinished, test } from 'vitest'
import { connectPostgres } from '../../../db/connection.ts'
import { parseEmailAddress } from '../../../domain/identity/email-address.ts'

const isAscii = (character: string) => (character.codePointAt(0) ?? 0) < 0x80
const hasAscii = (text: string) => [...text].some(isAscii)
const addressOf = (text: string) => {
  const parsed = parseEmailAddress(text)
  return 'address' in parsed ? parsed.address : undefined
}

/** Every character of Unicode beyond ASCII. */
const characters = Array.from({ length: 0x110000 - 0x80 }, (_, index) => index + 0x80)
  .filter((point) => point < 0xd800 || point > 0xdfff)
  .map((point) => String.fromCodePoint(point))

test('a character that normalisation or lower case turns into ASCII, in Node or in Postgres, is rejected', async () => {
  const sql = connectPostgres(inject('postgresUrl'), 1)
  onTestFinished(() => sql.end({ timeout: 5 }))
  const inPostgres = await sql<{ character: string; lower: string }[]>`
    select character, lower(character) as lower from unnest(${characters}::text[]) character
    where lower(character) <> character`
  const lowered = new Map(inPostgres.map((row) => [row.character, row.lower]))
  const changing = characters.filter((character) =>
    [character.normalize('NFC'), character.toLowerCase(), lowered.get(character) ?? ''].some(hasAscii),
  )
  expect(changing).toEqual(expect.arrayContaining(['\u212a', '\u037e', '\u1fef', '\u0130']))
  const accepted = changing.filter(
    (character) => addressOf(`a${character}@example.com`) ?? addressOf(`a@ex${character}mple.com`),
  )
  expect(accepted).toEqual([])
})

test('a composed letter that compares as an ASCII letter is rejected', () => {
  expect(addressOf('I\u0307@example.com')).toBeUndefined()
  expect(addressOf('someone@gI\u0307thub.example')).toBeUndefined()
})

test('letters of other scripts and letters with marks are accepted in one form', () => {
  expect(addressOf('Jose\u0301@exa\u0308mple.com')).toBe('José@exämple.com')
  expect(addressOf('用户@例子.广告')).toBe('用户@例子.广告')
  expect(addressOf(' someone@example.com\n')).toBe('someone@example.com')
})

/** Parts of addresses, with characters that normalisation composes, decomposes, reorders and replaces. */
const piece = fc.constantFrom(
  'a',
  'K',
  'I',
  'i',
  '1',
  '.',
  '-',
  '+',
  ';',
  '`',
  'é',
  'â',
  'ſ',
  'ß',
  '\u212a',
  '\u0130',
  '\u212b',
  '\u2126',
  '한',
  '\u1e9b',
  '\u0301',
  '\u0302',
  '\u0307',
  '\u0323',
  '\u0327',
  '\u0338',
  '\u0345',
  '\u037e',
  '\u1fef',
  '\u3099',
  '\u1161',
)
const text = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join(''))

test('an accepted address has no ASCII character that was not entered, in either case', () => {
  const asciiOf = (inText: string) => [...inText].filter(isAscii).map((character) => character.toLowerCase())
  fc.assert(
    fc.property(text, text, (local, domain) => {
      const typed = `${local}@${domain}.com`
      const address = addressOf(typed)
      if (address === undefined) return
      const left = asciiOf(typed)
      for (const character of asciiOf(address.toLowerCase())) {
        const at = left.indexOf(character)
        expect(at, `${JSON.stringify(typed)} became ${JSON.stringify(address)}`).toBeGreaterThanOrEqual(0)
        left.splice(at, 1)
      }
    }),
    { numRuns: 2000 },
  )
})

test('an accepted address does not change when it is parsed again', () => {
  fc.assert(
    fc.property(text, text, (local, domain) => {
      const address = addressOf(`${local}@${domain}.com`)
      if (address !== undefined) expect(addressOf(address)).toBe(address)
    }),
    { numRuns: 1000 },
  )
})

test.each(['no-domain', '@example.com', 'two@at@example.com', 'with space@example.com', 'nul\0@example.com', ''])(
  '%j is not an address',
  (typed) => expect(parseEmailAddress(typed)).toEqual({ problem: 'is not an email address' }),
)

test('an address with more than 254 characters in the stored form is rejected for its length', () => {
  const of = (length: number) => `a@${'é'.repeat(length - 6)}.com`
  expect(addressOf(of(254).normalize('NFD'))).toBe(of(254))
  expect(parseEmailAddress(of(255))).toEqual({ problem: 'is longer than 254 characters' })
})
