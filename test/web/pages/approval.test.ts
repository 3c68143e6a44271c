/** A plugin asks to be let in, and a person decides at a browser that runs no script. */
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

/** A plugin that asks to be let in. */
async function plugin({ name = 'OBS plugin', ip = '203.0.113.7' } = {}) {
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

test('a person who signs in at the plugin’s link and approves lets the plugin in to their account', async () => {
  const [user, asking, browser] = [await api.given.user(), await plugin(), site.browser()]
  const login = await browser.open(asking.path)
  expect(login.heading).toBe('Sign in to answer your streaming software')
  const question = await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect(question).toMatchObject({ path: asking.path, heading: 'Let this program in?' })
  expect(question.text).toContain(asking.code)
  expect(question.text).toContain('Calls itself OBS plugin')
  expect(question.text).toContain(`Let in to ${user.email}`)
  const approved = await browser.submit(question, '/login/approve')
  expect(approved).toMatchObject({ path: asking.path, heading: 'Approved' })
  const { body } = await asking.poll()
  expect(body.status).toBe('complete')
  const session = await api.get<{ user: { email: string } }>('/auth/session', { bearer: body.cp_access_jwt ?? '' })
  expect(session.body.user.email).toBe(user.email)
  expect((await browser.open(asking.path)).heading).toBe('Your streaming software is signed in')
})

test('opening the link and signing in there approve nothing', async () => {
  const [user, asking] = [await api.given.user(), await plugin()]
  const browser = await signedIn(user)
  await browser.open(asking.path, { from: 'cross-site' })
  await browser.open(asking.path)
  expect((await asking.poll()).body).toEqual({ status: 'pending', interval: 2 })
})

test('somebody who opens an account on the way comes back to the question, and has approved nothing', async () => {
  const [asking, browser] = [await plugin(), site.browser()]
  const login = await browser.open(asking.path)
  const link = /href="(\/sign-up[^"]*)"/.exec(login.html)?.[1] ?? ''
  const signUp = await browser.open(link.replaceAll('&amp;', '&'))
  const typed = { email: `${randomUUID()}@example.com`, password: 'a few words in a row' }
  const question = await browser.submit(signUp, '/sign-up', typed)
  expect(question).toMatchObject({ path: asking.path, heading: 'Let this program in?' })
  expect((await asking.poll()).body.status).toBe('pending')
})

test('another site’s page approves nothing, neither with nor without the sign-in', async () => {
  const [user, asking] = [await api.given.user(), await plugin()]
  const browser = await signedIn(user)
  for (const from of ['cross-site', 'same-site'] as const)
    expect((await browser.post('/login/approve', { attempt: asking.id }, { from })).status).toBe(403)
  const unsent = { 'Sec-Fetch-Site': '', Origin: 'https://evil.example' }
  expect((await browser.post('/login/approve', { attempt: asking.id }, { headers: unsent })).status).toBe(403)
  expect((await browser.open(`/login/approve?attempt=${asking.id}`)).status).toBeGreaterThanOrEqual(404)
  expect((await asking.poll()).body.status).toBe('pending')
})

test('who was signed out meanwhile is asked again after signing in', async () => {
  const [user, asking] = [await api.given.user(), await plugin()]
  const browser = await signedIn(user)
  const question = await browser.open(asking.path)
  await browser.post('/sign-out', {})
  const login = await browser.submit(question, '/login/approve')
  expect(login.heading).toBe('Sign in to answer your streaming software')
  const again = await browser.submit(login, '/login', { email: user.email, password: user.password })
  expect(again.heading).toBe('Let this program in?')
  expect((await asking.poll()).body.status).toBe('pending')
})

test('a denied plugin stays out, and an approval can be taken back until it was used', async () => {
  const user = await api.given.user()
  const browser = await signedIn(user)
  const [refused, regretted] = [await plugin(), await plugin()]
  const denied = await browser.submit(await browser.open(refused.path), '/login/deny')
  expect(denied).toMatchObject({ path: refused.path, heading: 'Denied' })
  expect((await refused.poll()).body.error?.code).toBe('attempt_denied')
  const approved = await browser.submit(await browser.open(regretted.path), '/login/approve')
  expect((await browser.submit(approved, '/login/deny')).heading).toBe('Denied')
  expect((await regretted.poll()).body.error?.code).toBe('attempt_denied')
})

test('Deny comes first and is as easy as Approve', async () => {
  const browser = await signedIn(await api.given.user())
  const { html } = await browser.open((await plugin()).path)
  const [deny, approve] = [...html.matchAll(/<button ([^>]*)>(Deny|Approve)<\/button>/g)]
  expect([deny?.[2], approve?.[2]]).toEqual(['Deny', 'Approve'])
  expect(deny?.[1]).toBe(approve?.[1])
})

test('a sign-in that is over, unknown, or somebody else’s has a page of its own that approves nothing', async () => {
  const browser = await signedIn(await api.given.user())
  const [late, taken] = [await plugin(), await plugin()]
  const question = await browser.open(late.path)
  await api.sql`
    update login_attempts set created_at = now() - interval '301 s', expires_at = now() - interval '1 s' where id = ${late.id}`
  expect(await browser.open(late.path)).toMatchObject({ status: 410, heading: 'This sign-in is over' })
  expect(await browser.submit(question, '/login/approve')).toMatchObject({ status: 410 })
  const other = await signedIn(await api.given.user())
  await other.submit(await other.open(taken.path), '/login/approve')
  const unknown = { status: 404, heading: 'We do not know this sign-in' }
  expect(await browser.open(taken.path)).toMatchObject(unknown)
  expect(await browser.open(`/login?attempt=${randomUUID()}`)).toMatchObject(unknown)
  expect(await browser.open('/login?attempt=../../relays')).toMatchObject(unknown)
  expect(await site.browser().open('/login?attempt=')).toMatchObject(unknown)
})

test('the page says whether the plugin asked from this very network', async () => {
  const browser = await signedIn(await api.given.user())
  const asked = async (ip: string, own: string) =>
    (await browser.open((await plugin({ ip })).path, { headers: { 'X-Forwarded-For': own } })).text
  expect(await asked('203.0.113.7', '203.0.113.7')).toContain('from this network (203.0.113.7)')
  expect(await asked('2001:db8:1:2::1', '2001:db8:1:2:3::9')).toContain('from this network')
  expect(await asked('203.0.113.7', '198.51.100.1')).toContain('from another network (203.0.113.7)')
  expect(await asked('2001:db8:1:2::1', '2001:db8:1:3::1')).toContain('from another network')
  // Of addresses that everybody has nobody is told that they are one's own.
  expect(await asked('10.0.0.7', '10.0.0.7')).toContain('a private address that tells nothing')
})

test('a plugin’s name is text, and takes no other place on the page than its own', async () => {
  const browser = await signedIn(await api.given.user())
  const { html } = await browser.open((await plugin({ name: '</dd><h1>Approve me</h1>' })).path)
  expect(html.match(/<h1/g)).toHaveLength(1)
  expect(html).toContain('<bdi>&lt;/dd>&lt;h1>Approve me&lt;/h1></bdi>')
})

test('an approval is for the account that the page named, and for no other that took its place meanwhile', async () => {
  const [first, second, asking] = [await api.given.user(), await api.given.user(), await plugin()]
  const browser = await signedIn(first)
  const question = await browser.open(asking.path)
  await browser.post('/sign-out', {})
  await browser.post('/login', { email: second.email, password: second.password })
  const again = await browser.submit(question, '/login/approve')
  expect(again.heading).toBe('Let this program in?')
  expect(again.text).toContain(`Let in to ${second.email}`)
  expect((await asking.poll()).body.status).toBe('pending')
})

test('whoever is signed in with another account can change it and comes back to the question', async () => {
  const [first, second] = [await api.given.user(), await api.given.user()]
  const asking = await plugin()
  const browser = await signedIn(first)
  const question = await browser.open(asking.path)
  const login = await browser.submit(question, '/sign-out', {}, { next: asking.path })
  expect(login.path).toBe(asking.path)
  const again = await browser.submit(login, '/login', { email: second.email, password: second.password })
  expect(again.text).toContain(`Let in to ${second.email}`)
})
