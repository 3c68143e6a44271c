/** The paths that a page may lead back to. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { localPath } from '../../web/local-path.ts'

const site = 'https://relay.example.com'

/** Combinations of the parts of known open redirects. */
const crafted = fc
  .array(
    fc.constantFrom(
      '/',
      '\\',
      '.',
      '..',
      '//',
      '@',
      ':',
      '?',
      '#',
      '%2f',
      '%5c',
      '%09',
      '\t',
      '\n',
      ' ',
      'evil.example',
      'https:',
      'javascript:',
      '/api/',
      'é',
      '\ud800',
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))

test('the result is on this site and not below /api, for any input', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        crafted,
        crafted.map((text) => `/${text}`),
        fc.webUrl(),
        fc.string({ unit: 'binary' }),
      ),
      (wanted) => {
        const url = new URL(localPath(wanted, '/relays'), site)
        expect(url.origin).toBe(site)
        expect(url.pathname).not.toMatch(/^\/api\//)
        // Idempotent.
        expect(localPath(url.pathname + url.search, '/elsewhere')).toBe(url.pathname + url.search)
      },
    ),
    { numRuns: 2000 },
  )
})

test('a page with a query is returned unchanged', () => {
  expect(localPath('/login?attempt=1b4e28ba&x=%2F', '/')).toBe('/login?attempt=1b4e28ba&x=%2F')
})

test.each([
  ['nothing', null],
  ['another site', 'https://evil.example/'],
  ['a host without its protocol', '//evil.example'],
  ['a backslash that browsers read as a slash', '/\\evil.example'],
  ['a tab that browsers remove', '/\t/evil.example'],
  ['dot segments that leave two slashes', '/.//evil.example'],
  ['a path of the API', '/api/v1/auth/logout'],
  ['a path that is too long', `/${'a'.repeat(2001)}`],
  ['a path that is too long when it is encoded', `/${'ü'.repeat(1000)}`],
])('%s is replaced by the fallback', (_, wanted) => {
  expect(localPath(wanted, '/relays')).toBe('/relays')
})
