/** Tabs of one browser that refresh the same token at the same time. */
import { expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiDouble } from '../support/api-double.ts'
import { startApiAndSite, startSite, type TestSite } from '../support/site.ts'

const { api, site } = await startApiAndSite()
const refreshPath = '/api/v1/auth/refresh'

/** Browsers with the same cookies, as tabs that send their requests before the first reply arrives. */
const tabsOf = (at: TestSite, refreshToken: string, count: number) =>
  Array.from({ length: count }, () => {
    const browser = at.browser()
    browser.cookies.set('svc_session', looksLikeAccessToken(-1))
    browser.cookies.set('svc_refresh', refreshToken, refreshPath)
    return browser
  })

const exchanges = (lines: readonly string[]) => lines.filter((line) => line.includes('"/api/v1/auth/refresh"')).length

test('fifty concurrent tabs make one exchange and receive the same cookies', async () => {
  const user = await api.given.user()
  const before = exchanges(api.logged)
  const tabs = tabsOf(site, user.refreshToken, 50)
  const replies = await Promise.all(
    tabs.map((tab, index) =>
      index % 2 === 0
        ? tab.requestApi('POST', '/auth/refresh')
        : tab.request('GET', `${refreshPath}/return?to=/relays`),
    ),
  )
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 307]))
  expect(exchanges(api.logged) - before).toBe(1)
  const cookies = tabs.map(({ cookies }) => `${cookies.get('svc_session')} ${cookies.get('svc_refresh')}`)
  expect(new Set(cookies).size).toBe(1)
  expect(cookies[0]).not.toContain(user.refreshToken)
})

test('a tab that sends the replaced token a moment later receives the same new token', async () => {
  const user = await api.given.user()
  const [first, late] = tabsOf(site, user.refreshToken, 2)
  await first?.requestApi('POST', '/auth/refresh')
  const before = exchanges(api.logged)
  await late?.requestApi('POST', '/auth/refresh')
  expect(exchanges(api.logged)).toBe(before)
  expect(late?.cookies.get('svc_refresh')).toBe(first?.cookies.get('svc_refresh'))
  expect((await late?.requestApi('GET', '/auth/session'))?.status).toBe(200)
})

test('a tab whose page was redirected before another tab renewed the cookies makes no second exchange', async () => {
  const user = await api.given.user()
  const [browser] = tabsOf(site, user.refreshToken, 1)
  const slow = await browser?.request('GET', '/relays')
  await browser?.open('/account')
  const renewed = browser?.cookies.get('svc_refresh')
  const before = exchanges(api.logged)

  const { pathname, search } = new URL(slow?.headers.get('location') ?? '', site.url)
  const page = await browser?.open(pathname + search)
  expect([page?.path, page?.status]).toEqual(['/relays', 200])
  expect(exchanges(api.logged)).toBe(before)
  expect(browser?.cookies.get('svc_refresh')).toBe(renewed)
})

test('a new token can be exchanged by another process at once', async () => {
  const user = await api.given.user()
  const [browser] = tabsOf(site, user.refreshToken, 1)
  await browser?.requestApi('POST', '/auth/refresh')
  const [elsewhere] = tabsOf(await startSite({ url: api.url }), browser?.cookies.get('svc_refresh') ?? '', 1)
  expect((await elsewhere?.requestApi('POST', '/auth/refresh'))?.status).toBe(200)
  expect(elsewhere?.cookies.get('svc_refresh')).not.toBe(browser?.cookies.get('svc_refresh'))
  expect((await elsewhere?.requestApi('GET', '/auth/session'))?.status).toBe(200)
})

test('a rejected token signs out all tabs after one exchange', async () => {
  const double = await startApiDouble()
  double.respondWith(() => ({ status: 401, body: { error: { code: 'invalid_refresh_token', message: 'No.' } } }))
  const tabs = tabsOf(await startSite(double), 'r'.repeat(43), 10)
  const replies = await Promise.all(tabs.map((tab) => tab.requestApi('POST', '/auth/refresh')))
  expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(401))
  expect(double.requests).toHaveLength(1)
  for (const { cookies } of tabs)
    expect([cookies.get('svc_session'), cookies.get('svc_refresh')]).toEqual([undefined, undefined])
})

test.each([
  ['500', { status: 500, body: { error: { code: 'internal_error', message: 'Oh.' } } }],
  ['404', { status: 404, body: 'nothing here' }],
  ['200 without tokens', { status: 200, body: {} }],
])('a reply of %s to an exchange signs no tab out, and the next request tries again', async (_, reply) => {
  const double = await startApiDouble()
  double.respondWith(() => reply)
  const tabs = tabsOf(await startSite(double), 'r'.repeat(43), 10)
  const replies = await Promise.all(tabs.map((tab) => tab.requestApi('POST', '/auth/refresh')))
  expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(503))
  for (const { cookies } of tabs) expect(cookies.get('svc_refresh')).toBe('r'.repeat(43))
  double.respondWith(() => ({ body: { cp_access_jwt: looksLikeAccessToken(600), refresh_token: 'n'.repeat(43) } }))
  expect((await tabs[0]?.requestApi('POST', '/auth/refresh'))?.status).toBe(200)
})

test('exchanges of different users are separate', async () => {
  const users = await Promise.all(Array.from({ length: 5 }, () => api.given.user()))
  const seen = await Promise.all(
    users.map(async (user) => {
      const [tab] = tabsOf(site, user.refreshToken, 1)
      await tab?.requestApi('POST', '/auth/refresh')
      return (await tab?.requestApi('GET', '/auth/session'))?.json<{ user: { id: string } }>().user.id
    }),
  )
  expect(seen).toEqual(users.map(({ userId }) => userId))
})
