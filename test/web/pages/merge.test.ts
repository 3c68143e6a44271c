/** A provider's address is an account's already, at a browser that runs no script. */
import { expect, test } from 'vitest'
import { userWithProvedAddress } from '../../support/merges.ts'
import { newProviderAccount } from '../../support/oauth-api.ts'
import { startOAuthSite } from '../../support/site-oauth.ts'

const oauth = await startOAuthSite()
const { api, site } = oauth

/** Somebody whom Google vouches for with the address of an account that is there already. */
async function collision(next = '/account') {
  const [user, browser] = [await userWithProvedAddress(oauth), site.browser()]
  const person = newProviderAccount({ email: user.email })
  const page = await oauth.through(browser, await browser.open(`/login?next=${next}`), 'google', person)
  return { user, browser, person, page }
}

const linkedProviders = async (bearer: string) => {
  type Body = { user: { linked_accounts: { provider: string; linked: boolean }[] } }
  const { body } = await api.get<Body>('/auth/session', { bearer })
  return body.user.linked_accounts.filter((one) => one.linked).map((one) => one.provider)
}

test('whoever proves with the password that the account is theirs is signed in to it with both', async () => {
  const { user, browser, page } = await collision()
  expect(page).toMatchObject({ path: '/merge', heading: 'Is this your account?' })
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  expect(browser.cookies.attributesOf('svc_merge')).toBe('Path=/merge; Max-Age=600; HttpOnly; Secure; SameSite=Strict')
  expect(await linkedProviders(user.bearer)).toEqual([])
  const done = await browser.submit(page, '/merge', { password: user.password })
  expect(done.path).toBe('/account')
  expect(await linkedProviders(user.bearer)).toEqual(['google'])
  expect(browser.cookies.get('svc_merge')).toBeUndefined()
})

test('a wrong password links nothing and can be typed again', async () => {
  const { user, browser, page } = await collision()
  const wrong = await browser.submit(page, '/merge', { password: 'not the right one' })
  expect(wrong).toMatchObject({ status: 401, problem: 'The password is not right.' })
  expect(await linkedProviders(user.bearer)).toEqual([])
  expect((await browser.submit(wrong, '/merge', { password: user.password })).path).toBe('/account')
})

test('whoever proves it with a provider that was linked before is asked once more, and only then linked', async () => {
  const [user, browser] = [await userWithProvedAddress(oauth), site.browser()]
  const onTwitch = newProviderAccount()
  await browser.post('/login', { email: user.email, password: user.password })
  const leaving = await browser.post('/oauth/twitch/start', { intent: 'link' })
  await browser.open(await oauth.away('twitch', onTwitch, leaving), { from: 'cross-site' })

  const other = site.browser()
  const login = await other.open('/login?next=/account')
  const page = await oauth.through(other, login, 'google', newProviderAccount({ email: user.email }))
  const proved = await oauth.through(other, page, 'twitch', onTwitch)
  expect(proved.path).toBe('/merge?proved=twitch')
  expect(proved.heading).toBe('Link Google to this account?')
  expect(await linkedProviders(user.bearer)).toEqual(['twitch'])
  expect((await other.submit(proved, '/merge')).path).toBe('/account')
  expect(await linkedProviders(user.bearer)).toEqual(['twitch', 'google'])
})

test('a provider account that is somebody else’s proves nothing', async () => {
  const [user, browser] = [await userWithProvedAddress(oauth), site.browser()]
  await browser.post('/login', { email: user.email, password: user.password })
  const leaving = await browser.post('/oauth/twitch/start', { intent: 'link' })
  await browser.open(await oauth.away('twitch', newProviderAccount(), leaving), { from: 'cross-site' })

  const other = site.browser()
  const page = await oauth.through(
    other,
    await other.open('/login'),
    'google',
    newProviderAccount({ email: user.email }),
  )
  const refused = await oauth.through(other, page, 'twitch', newProviderAccount())
  expect(refused).toMatchObject({ status: 401, problem: 'This is not a sign-in that the account had before.' })
  expect(refused.html).toContain('href="/merge"')
  // Saying in the address that it was proved helps nobody either.
  const claimed = await other.open('/merge?proved=twitch')
  const denied = await other.submit(claimed, '/merge')
  expect(denied.problem).toContain('Prove first that the account is yours')
  expect(await linkedProviders(user.bearer)).toEqual(['twitch'])
})

test('a merge belongs to the browser that it began in, and ends', async () => {
  const { user, browser, page } = await collision()
  const over = { status: 410, heading: 'Start again' }
  expect(await site.browser().open('/merge')).toMatchObject(over)
  expect(await site.browser().post('/merge', { password: user.password })).toMatchObject(over)
  await api.sql`update merge_requests set expires_at = now() - interval '1 s' where user_id = ${user.userId}`
  expect(await browser.submit(page, '/merge', { password: user.password })).toMatchObject(over)
  expect(browser.cookies.get('svc_merge')).toBeUndefined()
  expect(await linkedProviders(user.bearer)).toEqual([])
})

test('another site merges nothing', async () => {
  const { user, browser } = await collision()
  const page = await browser.post('/merge', { password: user.password }, { from: 'cross-site' })
  expect(page.status).toBe(403)
  expect(await linkedProviders(user.bearer)).toEqual([])
})

test('who came to answer a plugin is led back to it after merging', async () => {
  const { body } = await api.post<{ login_attempt_id: string }>('/auth/plugin/login/start', {})
  const attempt = `/login?attempt=${body.login_attempt_id}`
  const { user, browser, page } = await collision(encodeURIComponent(attempt))
  const question = await browser.submit(page, '/merge', { password: user.password })
  expect(question).toMatchObject({ path: attempt, heading: 'Let this program in?' })
})
