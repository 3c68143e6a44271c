/** Sign-in to the operator console, its cookie, and what keeps others out. */
import { expect, test } from 'vitest'
import { operatorPassword } from '../../support/relays.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({ api: { SVC_OPERATOR_PASSWORD: operatorPassword } })

async function signedIn() {
  const browser = site.browser()
  await browser.post('/operator/sign-in', { password: operatorPassword })
  return browser
}

test('the right password opens the page that asked for it', async () => {
  const browser = site.browser()
  const asked = await browser.open('/operator/jobs?cursor=a')
  expect(asked.name).toBe('operator-sign-in')
  const opened = await browser.submit(asked, '/operator/sign-in', { password: operatorPassword })
  expect([opened.name, opened.path]).toEqual(['operator-jobs', '/operator/jobs?cursor=a'])
})

test('the cookie is for scripts and other sites out of reach, ends with the session, and does not hold the password', async () => {
  const browser = site.browser()
  const reply = await browser.request('POST', '/operator/sign-in', { body: { password: operatorPassword } })
  const [cookie = '', ...others] = reply.headers.getSetCookie()
  expect(others).toEqual([])
  const [pair = '', ...attributes] = cookie.split('; ')
  expect(pair).toMatch(/^svc_operator=[\w-]{43}$/)
  const maxAge = Number(/Max-Age=(\d+)/.exec(cookie)?.[1])
  expect(attributes).toEqual(['Path=/operator', `Max-Age=${maxAge}`, 'HttpOnly', 'Secure', 'SameSite=Strict'])
  expect(maxAge).toBeGreaterThan(3580)
  expect(maxAge).toBeLessThanOrEqual(3600)
  for (const text of [operatorPassword, encodeURIComponent(operatorPassword), btoa(`operator:${operatorPassword}`)])
    expect(reply.headers.getSetCookie().join()).not.toContain(text)
})

test('a wrong password opens nothing and is audited', async () => {
  const browser = site.browser()
  const refused = await browser.post('/operator/sign-in', { password: 'wrong', next: '/operator/jobs' })
  expect([refused.status, refused.name, refused.problem]).toEqual([401, 'operator-sign-in', 'invalid_operator'])
  expect(refused.form('/operator/sign-in').fields).toMatchObject({ next: '/operator/jobs', password: '' })
  expect((await browser.open('/operator/jobs')).name).toBe('operator-sign-in')
  const entries = await api.sql`select from audit_entries where action = 'operator_sign_in_failed'`
  expect(entries).not.toEqual([])
})

test.each(['https://evil.example/', '//evil.example/', '/relays', '/operator-else', '/api/v1/admin/jobs'])(
  'a sign-in does not lead to %s',
  async (next) => {
    const browser = site.browser()
    const reply = await browser.request('POST', '/operator/sign-in', { body: { password: operatorPassword, next } })
    expect(reply.headers.get('location')).toBe('/operator/sign-in?next=%2Foperator&signed_in=1')
  },
)

test('after a sign-out the token opens nothing, in no browser', async () => {
  const browser = await signedIn()
  const page = await browser.open('/operator/jobs')
  const token = browser.cookies.get('svc_operator')
  const signedOut = await browser.submit(page, '/operator/sign-out')
  expect(signedOut.name).toBe('operator-sign-in')
  const reply = await site.browser().request('GET', '/operator/jobs', { headers: { Cookie: `svc_operator=${token}` } })
  expect(reply.status).toBe(303)
  expect(reply.headers.get('location')).toBe('/operator/sign-in?next=%2Foperator%2Fjobs')
})

test('a session that has ended leads to the sign-in page and deletes the cookie', async () => {
  const browser = await signedIn()
  await api.sql`update operator_sessions set last_used_at = now() - interval '1 hour'`
  const reply = await browser.request('GET', '/operator/jobs')
  expect(reply.headers.get('location')).toBe('/operator/sign-in?next=%2Foperator%2Fjobs')
  expect(reply.headers.getSetCookie()[0]).toMatch(/^svc_operator=; Path=\/operator; Max-Age=0;/)
})

test('the refresh of a page by its script does not prolong the session', async () => {
  const browser = await signedIn()
  const ageOf = async () => {
    const [row] = await api.sql`
      select extract(epoch from now() - max(last_used_at))::float8 as age from operator_sessions where expires_at > now()`
    return row?.age as number
  }
  await api.sql`update operator_sessions set last_used_at = now() - interval '5 minutes'`
  expect((await browser.request('GET', '/operator/jobs', { headers: { 'X-Unattended': 'true' } })).status).toBe(200)
  expect(await ageOf()).toBeGreaterThan(299)
  await browser.open('/operator/jobs')
  expect(await ageOf()).toBeLessThan(60)
})

test.each(['/operator/sign-in', '/operator/sign-out'])(
  'a form of another site cannot be posted to %s',
  async (path) => {
    const browser = await signedIn()
    const reply = await browser.request('POST', path, { body: { password: operatorPassword }, from: 'cross-site' })
    expect(reply.status).toBe(403)
    expect(reply.headers.getSetCookie()).toEqual([])
    expect((await browser.open('/operator/jobs')).name).toBe('operator-jobs')
  },
)

test('a link of another site opens the page for a signed-in operator', async () => {
  const browser = await signedIn()
  expect((await browser.open('/operator/jobs', { from: 'cross-site' })).name).toBe('operator-jobs')
})

test('the cookie is no operator session for the API on the origin of the site', async () => {
  const browser = await signedIn()
  expect((await browser.requestApi('GET', '/admin/jobs')).status).toBe(404)
})

test('search engines are kept out, and no page of the site links to the console', async () => {
  const browser = await signedIn()
  for (const path of ['/operator/jobs', '/operator/sign-in'])
    expect((await browser.open(path)).headers.get('x-robots-tag')).toContain('noindex')
  for (const path of ['/', '/login', '/sign-up', '/forgot-password'])
    expect((await browser.open(path)).html).not.toContain('/operator')
})

test('without an operator password there is no console', async () => {
  const { site: plain } = await startApiAndSite()
  const browser = plain.browser()
  for (const path of ['/operator/sign-in', '/operator/jobs']) expect((await browser.open(path)).status).toBe(404)
  expect((await browser.post('/operator/sign-in', { password: 'any password' })).status).toBe(404)
})
