import fc from 'fast-check'
import { expect, test } from 'vitest'
import { localPath } from '../../web/local-path.ts'

const site = 'https://relay.example.com'

/** Strings that begin as those do that lead elsewhere. */
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

test('whatever a request names, the next address is on this site and no address of the api', () => {
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
        // Said once more by the browser, it stays where it is.
        expect(localPath(url.pathname + url.search, '/elsewhere')).toBe(url.pathname + url.search)
      },
    ),
    { numRuns: 2000 },
  )
})

test('a page with its query is kept as it is', () => {
  expect(localPath('/login?attempt=1b4e28ba&x=%2F', '/')).toBe('/login?attempt=1b4e28ba&x=%2F')
})

test.each([
  ['nothing', null],
  ['another site', 'https://evil.example/'],
  ['a host without its protocol', '//evil.example'],
  ['a backslash that browsers read as a slash', '/\\evil.example'],
  ['a tab that browsers leave out', '/\t/evil.example'],
  ['dots that leave two slashes', '/.//evil.example'],
  ['a path of the api', '/api/v1/auth/logout'],
  ['more than a browser would send', `/${'a'.repeat(2001)}`],
  ['what grows beyond that when it is encoded', `/${'ü'.repeat(1000)}`],
])('%s is not followed', (_, wanted) => {
  expect(localPath(wanted, '/relays')).toBe('/relays')
})
