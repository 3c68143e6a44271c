/** Browsers that keep no cookies, and addresses at which they keep none. */
import { expect, test } from 'vitest'
import { startProgram } from '../support/programs.ts'
import { operatorPassword } from '../support/relays.ts'
import { startApiAndSite, startSite, type TestSite } from '../support/site.ts'
import type { Browser } from '../support/site-browser.ts'

const { api, site } = await startApiAndSite({ api: { SVC_OPERATOR_PASSWORD: operatorPassword } })

/** A browser with cookies turned off. */
function withoutCookies(at: TestSite = site): Browser {
  const browser = at.browser()
  browser.cookies.store = () => undefined
  return browser
}

const adviceOf = (html: string) => [...html.matchAll(/data-advice="(\w+)"/g)].map(([, name]) => name)

test('a page that needs a sign-in says at once that cookies are refused', async () => {
  const page = await withoutCookies().open('/account?x=1')
  expect([page.name, page.status, adviceOf(page.html)]).toEqual(['cookies-refused', 400, ['allow']])
  expect(page.html).toContain('href="/account?x=1"')
  expect(page.visited).toHaveLength(3)
})

test('a sign-in whose cookies are refused ends there too, and works with cookies', async () => {
  const user = await api.given.user()
  const form = { email: user.email, password: user.password }
  for (const path of ['/login', '/sign-up']) {
    const fields = path === '/login' ? form : { email: 'new@example.com', password: 'a few words in a row' }
    expect((await withoutCookies().post(path, fields)).name).toBe('cookies-refused')
  }
  expect((await site.browser().post('/login', form)).name).toBe('relays')
})

test('the operator console asks for its password once, and says that cookies are refused', async () => {
  const page = await withoutCookies().post('/operator/sign-in', { password: operatorPassword, next: '/operator/jobs' })
  expect([page.name, page.status]).toEqual(['cookies-refused', 400])
  expect(page.html).toContain('href="/operator/sign-in?next=%2Foperator%2Fjobs"')
})

test('a callback of a provider without the cookie of its start says so', async () => {
  const page = await withoutCookies().open('/oauth/google/callback?code=a&state=b', { from: 'cross-site' })
  expect(page.name).toBe('oauth-expired')
  expect(page.html).toContain('keeps no cookies')
})

test('cookies of the same name with two values end there too', async () => {
  const headers = { Cookie: 'svc_renewed=a; svc_renewed=b' }
  const browser = withoutCookies()
  const page = await browser.open('/account', { headers })
  expect(page.name).toBe('cookies-refused')
})

test('another address than the configured one names the right one', async () => {
  const elsewhere = { Host: '192.168.1.5:8081' }
  const page = await withoutCookies().open('/account', { headers: elsewhere })
  expect([page.name, adviceOf(page.html)]).toEqual(['cookies-refused', ['address', 'allow']])
  expect(page.html).toContain(`href="${site.url}/account"`)

  // Browsers send no Fetch Metadata to http: addresses of other machines.
  const reply = await withoutCookies().request('POST', '/login', {
    body: { email: 'a@example.com', password: 'x' },
    headers: { ...elsewhere, Origin: 'http://192.168.1.5:8081', 'Sec-Fetch-Site': '' },
  })
  expect([reply.status, adviceOf(reply.text)]).toEqual([403, ['address']])
  expect(reply.text).toContain(`href="${site.url}/"`)
  const foreign = await withoutCookies().request('POST', '/login', {
    body: {},
    headers: { ...elsewhere, Origin: 'http://evil.example', 'Sec-Fetch-Site': '' },
  })
  expect([foreign.status, adviceOf(foreign.text)]).toEqual([403, []])
})

test('a site that is configured with an http: address of another machine says that it needs https:', async () => {
  const plain = await startSite(api, { SVC_SITE_URL: 'http://relay.example.com', SVC_SITE_PORT: '0' })
  const page = await withoutCookies(plain).open('/account', { headers: { Host: 'relay.example.com' } })
  expect([page.name, adviceOf(page.html)]).toEqual(['cookies-refused', ['https']])
  expect(page.html).toContain('SVC_SITE_URL')
})

test('a link of another site leads to the login page in a browser without Fetch Metadata', async () => {
  const headers = { 'Sec-Fetch-Site': '', 'Sec-Fetch-Mode': '' }
  const page = await site.browser().open('/account', { headers, from: 'cross-site' })
  expect(page.path).toBe('/login?next=%2Faccount')
})

test('the site warns at its start of an http: address at which nobody can sign in', async () => {
  const variables = { SVC_SITE_PORT: '0', SVC_API_URL: api.url, SVC_SITE_URL: 'http://relay.example.com' }
  const program = startProgram('site', variables)
  await expect.poll(program.output, { timeout: 20_000 }).toContain('Nobody can sign in at http://relay.example.com')
  await program.stop()
})
