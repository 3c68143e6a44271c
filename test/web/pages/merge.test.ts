/** Linking a provider whose email address belongs to an account already, in a browser without scripts. */
import { expect, test } from 'vitest'
import { userWithProvedAddress } from '../../support/merges.ts'
import { fetchUser, linkedProviders, newProviderAccount } from '../../support/oauth-api.ts'
import { startOAuthSite } from '../../support/site-oauth.ts'

const oauth = await startOAuthSite()
const { api, site } = oauth

/** A sign-in with Google whose verified email address belongs to an account. */
async function startMerge(next = '/account') {
  const [user, browser] = [await userWithProvedAddress(oauth), site.browser()]
  const login = await browser.open(`/login?next=${next}`)
  const page = await oauth.signInWith(browser, login, 'google', newProviderAccount({ email: user.email }))
  return { user, browser, page }
}

/** An account with Twitch linked, and another browser in which a sign-in with Google has started a merge. */
async function startMergeWithTwitchLinked() {
  const [user, browser] = [await userWithProvedAddress(oauth), site.browser()]
  const twitchAccount = newProviderAccount()
  await browser.post('/login', { email: user.email, password: user.password })
  const redirect = await browser.post('/oauth/twitch/start', { intent: 'link' })
  await browser.open(await oauth.callbackPath('twitch', twitchAccount, redirect), { from: 'cross-site' })

  const other = site.browser()
  const login = await other.open('/login?next=/account')
  const page = await oauth.signInWith(other, login, 'google', newProviderAccount({ email: user.email }))
  return { user, browser: other, page, twitchAccount }
}

const linkedTo = async (bearer: string) => linkedProviders(await fetchUser(api, bearer))

test('the password confirms the merge, links the provider and signs in', async () => {
  const { user, browser, page } = await startMerge()
  expect(page).toMatchObject({ path: '/merge', name: 'merge-ownership' })
  expect(browser.cookies.get('svc_session')).toBeUndefined()
  expect(browser.cookies.attributesOf('svc_merge')).toBe('Path=/merge; Max-Age=600; HttpOnly; Secure; SameSite=Strict')
  expect(await linkedTo(user.bearer)).toEqual([])
  const done = await browser.submit(page, '/merge', { password: user.password })
  expect(done.path).toBe('/account')
  expect(await linkedTo(user.bearer)).toEqual(['google'])
  expect(browser.cookies.get('svc_merge')).toBeUndefined()
})

test('a wrong password links nothing and can be corrected', async () => {
  const { user, browser, page } = await startMerge()
  const wrong = await browser.submit(page, '/merge', { password: 'not the right one' })
  expect(wrong).toMatchObject({ status: 401, problem: 'invalid_credentials' })
  expect(await linkedTo(user.bearer)).toEqual([])
  expect((await browser.submit(wrong, '/merge', { password: user.password })).path).toBe('/account')
})

test('a linked provider confirms the merge, which links after a further form', async () => {
  const { user, browser, page, twitchAccount } = await startMergeWithTwitchLinked()
  const confirmation = await oauth.signInWith(browser, page, 'twitch', twitchAccount)
  expect(confirmation).toMatchObject({ path: '/merge?proved=twitch', name: 'merge-confirmation' })
  expect(await linkedTo(user.bearer)).toEqual(['twitch'])
  expect((await browser.submit(confirmation, '/merge')).path).toBe('/account')
  expect(await linkedTo(user.bearer)).toEqual(['twitch', 'google'])
})

test('another account at a linked provider does not confirm the merge', async () => {
  const { user, browser, page } = await startMergeWithTwitchLinked()
  const refused = await oauth.signInWith(browser, page, 'twitch', newProviderAccount())
  expect(refused).toMatchObject({ status: 401, name: 'oauth-failed', problem: 'invalid_credentials' })
  expect(refused.links).toContain('/merge')
  const forged = await browser.open('/merge?proved=twitch')
  const denied = await browser.submit(forged, '/merge')
  expect(denied.status).toBe(401)
  expect(denied.problem).toBeDefined()
  expect(await linkedTo(user.bearer)).toEqual(['twitch'])
})

test('a merge works in the browser that started it, until it expires', async () => {
  const { user, browser, page } = await startMerge()
  const expired = { status: 410, name: 'merge-expired', problem: 'merge_expired' }
  expect(await site.browser().open('/merge')).toMatchObject(expired)
  expect(await site.browser().post('/merge', { password: user.password })).toMatchObject(expired)
  await api.sql`update merge_requests set expires_at = now() - interval '1 s' where user_id = ${user.userId}`
  expect(await browser.submit(page, '/merge', { password: user.password })).toMatchObject(expired)
  expect(browser.cookies.get('svc_merge')).toBeUndefined()
  expect(await linkedTo(user.bearer)).toEqual([])
})

test('a cross-origin form does not confirm a merge', async () => {
  const { user, browser } = await startMerge()
  const page = await browser.post('/merge', { password: user.password }, { from: 'cross-site' })
  expect(page.status).toBe(403)
  expect(await linkedTo(user.bearer)).toEqual([])
})

test('a merge that began at a plugin’s link returns to its approval', async () => {
  const { body } = await api.post<{ login_attempt_id: string }>('/auth/plugin/login/start', {})
  const attempt = `/login?attempt=${body.login_attempt_id}`
  const { user, browser, page } = await startMerge(encodeURIComponent(attempt))
  const question = await browser.submit(page, '/merge', { password: user.password })
  expect(question).toMatchObject({ path: attempt, name: 'approval' })
})
