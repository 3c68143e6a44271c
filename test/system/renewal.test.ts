/** Cookies and renewal redirects, as a real browser handles them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext } from 'playwright-core'
import { expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import type { GivenUser } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { startApiAndSite } from '../support/site.ts'
import { visitor } from './browser.ts'

const { api, site } = await startApiAndSite()
const at = (path: string) => new URL(path, site.url).href
const refreshPath = '/api/v1/auth/refresh'

/** A signed-in user with an expired access token. */
async function signedInLongAgo(user: GivenUser) {
  const person = await visitor()
  await setCookie(person.context, 'svc_session', '/', looksLikeAccessToken(-1))
  await setCookie(person.context, 'svc_refresh', refreshPath, user.refreshToken)
  return person
}

const setCookie = (context: BrowserContext, name: string, path: string, value: string) =>
  context.addCookies([
    { name, value, path, domain: 'localhost', httpOnly: true, secure: true, sameSite: 'Strict' as const },
  ])

const cookieOf = async (context: BrowserContext, name: string, path: string) =>
  (await context.cookies(at(path))).find((cookie) => cookie.name === name)?.value

const exchanges = () => api.logged.filter((line) => line.includes(`"${refreshPath}"`)).length

/** Another site: the same machine under another host name. */
async function foreignPage(html: string): Promise<string> {
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('several tabs with an expired access token show their pages after one token exchange', async () => {
  const user = await api.given.user()
  const { context } = await signedInLongAgo(user)
  const before = exchanges()
  const tabs = await Promise.all(Array.from({ length: 6 }, () => context.newPage()))
  await Promise.all(tabs.map((tab) => tab.goto(at('/account/security'))))
  for (const tab of tabs) {
    expect(tab.url()).toBe(at('/account/security'))
    expect(await tab.locator('main').textContent()).toContain(user.email)
  }
  expect(exchanges() - before).toBe(1)
  expect(await cookieOf(context, 'svc_refresh', refreshPath)).not.toBe(user.refreshToken)
})

test('a form that is sent with an expired access token arrives', async () => {
  const user = await api.given.user()
  const plugin = await api.given.signIn(user, 'OBS')
  const { context, page } = await signedInLongAgo(user)
  await page.goto(at('/account/security'))
  await setCookie(context, 'svc_session', '/', looksLikeAccessToken(-1))
  const entry = page.locator('li', { hasText: 'OBS' }).filter({ has: page.locator('form') })
  await entry.getByRole('button').click()
  await expect.poll(async () => (await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(401)
  expect(await page.locator('main').textContent()).toContain(user.email)
})

test('the refresh token is sent to its own path only, and scripts cannot read either token', async () => {
  const user = await api.given.user()
  const { context, page } = await signedInLongAgo(user)
  const sent: string[] = []
  page.on('request', async (request) => {
    const { cookie = '' } = await request.allHeaders()
    if (cookie.includes('svc_refresh')) sent.push(new URL(request.url()).pathname)
  })
  await page.goto(at('/account/security'))
  await page.reload()
  expect(sent).toEqual([`${refreshPath}/return`])
  expect(await page.evaluate('document.cookie')).toBe('')
  for (const { name, httpOnly, secure, sameSite, domain } of await context.cookies(at(refreshPath)))
    expect([httpOnly, secure, sameSite, domain]).toEqual([
      true,
      true,
      name === 'svc_renewed' ? 'Lax' : 'Strict',
      'localhost',
    ])
})

test('a link on another site opens the page as the signed-in user', async () => {
  const user = await api.given.user()
  const { page } = await signedInLongAgo(user)
  await page.goto(await foreignPage(`<a href="${at('/account/security')}">there</a>`))
  await page.getByText('there').click()
  await page.waitForURL(at('/account/security'))
  await expect.poll(() => page.locator('main').textContent()).toContain(user.email)
})

test('a form on another site changes nothing', async () => {
  const user = await api.given.user()
  const other = await api.given.signIn(user)
  const { context, page } = await signedInLongAgo(user)
  const action = at(`/account/sessions/${other.authSessionId}/sign-out`)
  const forms = [action, at('/sign-out'), at(`${refreshPath}/return?to=/sign-out`), at('/api/v1/auth/logout')]
  for (const target of forms) {
    await page.goto(await foreignPage(`<form method="post" action="${target}"><button>go</button></form>`))
    const [answer] = await Promise.all([page.waitForResponse(target), page.getByText('go').click()])
    expect([target, answer.status()]).toEqual([target, 403])
  }
  expect((await api.get('/auth/session', { bearer: other.bearer })).status).toBe(200)
  expect(await cookieOf(context, 'svc_refresh', refreshPath)).toBe(user.refreshToken)
})
