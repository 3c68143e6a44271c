/** Approving the sign-in of a plugin, in a browser without scripts. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { GivenUser } from '../../support/api.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({ site: { SVC_TRUSTED_PROXY_HOPS: '1' } })

interface Started {
  readonly login_attempt_id: string
  readonly authorize_url: string
  readonly poll_token: string
  readonly user_code: string
}

/** Starts the sign-in of a plugin. */
async function startPluginLogin({ name = 'OBS plugin', ip = '203.0.113.7' } = {}) {
  const { body } = await api.post<Started>('/auth/plugin/login/start', { client_name: name }, { ip })
  const { login_attempt_id, poll_token } = body
  const url = new URL(body.authorize_url)
  const poll = () =>
    api.post<{ status?: string; cp_access_jwt?: string; error?: { code: string } }>('/auth/plugin/login/poll', {
      login_attempt_id,
      poll_token,
    })
  return { id: login_attempt_id, code: body.user_code, path: url.pathname + url.search, poll }
}

async function signedIn(user: GivenUser) {
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return browser
}

test('signing in at the plugin’s link and approving signs the plugin in', async () => {
  const [user, attempt, browser] = [await api.given.user(), await startPluginLogin(), site.browser()]
  const login = await browser.open(attempt.path)
  expect([login.name, login.data('next')]).toEqual(['login', ['approval']])
  const question = await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect(question).toMatchObject({ path: attempt.path, name: 'approval' })
  for (const text of [attempt.code, 'OBS plugin', user.email]) expect(question.text).toContain(text)
  expect(question.data('account')).toEqual([user.userId])
  const approved = await browser.submit(question, '/login/approve')
  expect(approved).toMatchObject({ path: attempt.path, name: 'approval-approved', notice: 'approved' })
  const { body } = await attempt.poll()
  expect(body.status).toBe('complete')
  const session = await api.get<{ user: { email: string } }>('/auth/session', { bearer: body.cp_access_jwt ?? '' })
  expect(session.body.user.email).toBe(user.email)
  expect((await browser.open(attempt.path)).name).toBe('approval-consumed')
})

test('opening the link does not approve', async () => {
  const [user, attempt] = [await api.given.user(), await startPluginLogin()]
  const browser = await signedIn(user)
  await browser.open(attempt.path, { from: 'cross-site' })
  await browser.open(attempt.path)
  expect((await attempt.poll()).body).toEqual({ status: 'pending', interval: 2 })
})

test('signing up at the plugin’s link returns to the approval and approves nothing', async () => {
  const [attempt, browser] = [await startPluginLogin(), site.browser()]
  const login = await browser.open(attempt.path)
  const signUp = await browser.open(login.links.find((href) => href.startsWith('/sign-up')) ?? '')
  const credentials = { email: `${randomUUID()}@example.com`, password: 'a few words in a row' }
  const question = await browser.submit(signUp, '/sign-up', credentials)
  expect(question).toMatchObject({ path: attempt.path, name: 'approval' })
  expect((await attempt.poll()).body.status).toBe('pending')
})

test('a cross-origin form approves nothing', async () => {
  const [user, attempt] = [await api.given.user(), await startPluginLogin()]
  const browser = await signedIn(user)
  for (const from of ['cross-site', 'same-site'] as const)
    expect((await browser.post('/login/approve', { attempt: attempt.id }, { from })).status).toBe(403)
  const withoutMetadata = { 'Sec-Fetch-Site': '', Origin: 'https://evil.example' }
  expect((await browser.post('/login/approve', { attempt: attempt.id }, { headers: withoutMetadata })).status).toBe(403)
  expect((await browser.open(`/login/approve?attempt=${attempt.id}`)).status).toBeGreaterThanOrEqual(404)
  expect((await attempt.poll()).body.status).toBe('pending')
})

test('an approval after signing out asks again after the next sign-in', async () => {
  const [user, attempt] = [await api.given.user(), await startPluginLogin()]
  const browser = await signedIn(user)
  const question = await browser.open(attempt.path)
  await browser.post('/sign-out', {})
  const login = await browser.submit(question, '/login/approve')
  expect(login.name).toBe('login')
  const again = await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect(again.name).toBe('approval')
  expect((await attempt.poll()).body.status).toBe('pending')
})

test('a denied plugin is not signed in, and an approval can be denied until the plugin has signed in', async () => {
  const user = await api.given.user()
  const browser = await signedIn(user)
  const [first, second] = [await startPluginLogin(), await startPluginLogin()]
  const denied = await browser.submit(await browser.open(first.path), '/login/deny')
  expect(denied).toMatchObject({ path: first.path, name: 'approval-denied', notice: 'denied' })
  expect((await first.poll()).body.error?.code).toBe('attempt_denied')
  const approved = await browser.submit(await browser.open(second.path), '/login/approve')
  expect((await browser.submit(approved, '/login/deny')).name).toBe('approval-denied')
  expect((await second.poll()).body.error?.code).toBe('attempt_denied')
})

test('the deny button comes before the approve button and has the same attributes', async () => {
  const browser = await signedIn(await api.given.user())
  const { html } = await browser.open((await startPluginLogin()).path)
  const buttons = [...html.matchAll(/<form[^>]* action="\/login\/(approve|deny)"[^>]*>.*?<button ([^>]*)>/gs)]
  expect(buttons.map(([, decision]) => decision)).toEqual(['deny', 'approve'])
  expect(buttons[0]?.[2]).toBe(buttons[1]?.[2])
})

test('an expired or unknown login attempt, or one that another account decided, cannot be approved', async () => {
  const browser = await signedIn(await api.given.user())
  const [late, taken] = [await startPluginLogin(), await startPluginLogin()]
  const question = await browser.open(late.path)
  await api.sql`
    update login_attempts set created_at = now() - interval '301 s', expires_at = now() - interval '1 s' where id = ${late.id}`
  expect(await browser.open(late.path)).toMatchObject({ status: 410, name: 'approval-expired' })
  expect(await browser.submit(question, '/login/approve')).toMatchObject({ status: 410 })
  const other = await signedIn(await api.given.user())
  await other.submit(await other.open(taken.path), '/login/approve')
  const unknown = { status: 404, name: 'approval-unknown' }
  expect(await browser.open(taken.path)).toMatchObject(unknown)
  expect(await browser.open(`/login?attempt=${randomUUID()}`)).toMatchObject(unknown)
  expect(await browser.open('/login?attempt=../../relays')).toMatchObject(unknown)
  expect(await site.browser().open('/login?attempt=')).toMatchObject(unknown)
})

test.each([
  ['203.0.113.7', '203.0.113.7', 'same'],
  ['2001:db8:1:2::1', '2001:db8:1:2:3::9', 'same'],
  ['203.0.113.7', '198.51.100.1', 'other'],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', 'other'],
  // Many networks use the same private addresses.
  ['10.0.0.7', '10.0.0.7', 'unknown'],
])('a request from %s is shown to a visitor at %s as from the %s network', async (ip, visitorIp, network) => {
  const browser = await signedIn(await api.given.user())
  const { path } = await startPluginLogin({ ip })
  const page = await browser.open(path, { headers: { 'X-Forwarded-For': visitorIp } })
  expect(page.data('network')).toEqual([network])
  expect(page.text).toContain(ip)
})

test('the plugin’s name is escaped and isolated', async () => {
  const browser = await signedIn(await api.given.user())
  const { html } = await browser.open((await startPluginLogin({ name: '</dd><h1>Approve me</h1>' })).path)
  expect(html.match(/<h1/g)).toHaveLength(1)
  expect(html).toContain('<bdi>&lt;/dd>&lt;h1>Approve me&lt;/h1></bdi>')
})

test('an approval is valid for the account that the page showed only', async () => {
  const [first, second, attempt] = [await api.given.user(), await api.given.user(), await startPluginLogin()]
  const browser = await signedIn(first)
  const question = await browser.open(attempt.path)
  await browser.post('/sign-out', {})
  await browser.post('/login', { email: second.email, password: second.password })
  const again = await browser.submit(question, '/login/approve')
  expect([again.name, again.data('account')]).toEqual(['approval', [second.userId]])
  expect((await attempt.poll()).body.status).toBe('pending')
})

test('switching accounts returns to the approval', async () => {
  const [first, second] = [await api.given.user(), await api.given.user()]
  const attempt = await startPluginLogin()
  const browser = await signedIn(first)
  const question = await browser.open(attempt.path)
  const login = await browser.submit(question, '/sign-out', {}, { next: attempt.path })
  expect(login.path).toBe(attempt.path)
  const again = await browser.submit(login, '/login', { email: second.email, password: second.password })
  expect([again.name, again.data('account')]).toEqual(['approval', [second.userId]])
})
