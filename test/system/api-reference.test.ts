/** The API reference in Chromium, on the API's own origin and on the site's. */
import type { Page, Request } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { looksLikeAccessToken } from '../support/access-tokens.ts'
import { startApiAndSite } from '../support/site.ts'
import { findViolations, signIn, type Visitor, visitor } from './browser.ts'

const { api, site } = await startApiAndSite()
const origins = [
  ['the API', api.url],
  ['the site', site.url],
] as const

interface Reader extends Visitor {
  /** The requests that left the origin of the page. */
  readonly foreign: readonly string[]
}

/** Opens the reference at an operation. */
const open = async (origin: string, operation: string, look?: Parameters<typeof visitor>[0]): Promise<Reader> =>
  openAs(await visitor(look), origin, operation)

async function openAs(reader: Visitor, origin: string, operation: string): Promise<Reader> {
  const foreign: string[] = []
  reader.context.on('request', (request: Request) => {
    if (!request.url().startsWith(`${origin}/`) && !/^(data|blob):/.test(request.url())) foreign.push(request.url())
  })
  await reader.page.goto(`${origin}/docs#tag/${operation}`)
  return { ...reader, foreign }
}

const capacity = 'regions/GET/api/v1/capacity/status'
const active = 'relays/GET/api/v1/relay/active'
const send = (page: Page) => page.getByRole('dialog').getByRole('button', { name: /^send/i }).first().click()
const testButton = (page: Page, path: string) =>
  page.getByRole('button', { name: new RegExp(`test request.*${path}\\b`, 'i') })
const width = (page: Page) => page.evaluate('document.scrollingElement.scrollWidth')

describe.each(origins)('the API reference of %s', (_, origin) => {
  test('sends a request that is tried out to its own origin', async () => {
    const { page, foreign, faults, context } = await open(origin, capacity)
    await testButton(page, 'capacity/status').click()
    const replied = page.waitForResponse(`${origin}/api/v1/capacity/status`)
    await send(page)
    expect((await replied).status()).toBe(200)
    await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/Status:\s+200/)
    expect([foreign, faults]).toEqual([[], []])
    await context.close()
  })

  test.each(['light', 'dark'] as const)('fits a phone in its %s colours', async (scheme) => {
    const { page, foreign, faults, context } = await open(origin, capacity, { device: 'phone', scheme })
    await testButton(page, 'capacity/status').waitFor()
    expect(await width(page)).toBe(390)
    expect([foreign, faults]).toEqual([[], []])
    await context.close()
  })

  test('lists the operations without scripts', async () => {
    const { page, foreign, context } = await open(origin, capacity, { script: false, device: 'phone' })
    const operations = page.locator('[data-operation]')
    expect(await operations.count()).toBeGreaterThan(60)
    await page.locator('[data-operation="startRelay"] > summary').click()
    expect(await page.locator('[data-operation="startRelay"]').innerText()).toContain('relay_limit_reached')
    expect(await page.locator('h1').evaluate((heading) => heading.ownerDocument.documentElement.scrollWidth)).toBe(390)
    expect(foreign).toEqual([])
    await context.close()
  })
})

describe('a visitor of the site', () => {
  /** Opens `GET /relay/active` and its form to send it. */
  async function openActive(reader: Visitor): Promise<Page> {
    const { page } = await openAs(reader, site.url, active)
    await testButton(page, 'relay/active').click()
    return page
  }

  async function signedIn() {
    const user = await api.given.user()
    const reader = await visitor()
    await reader.page.goto(`${site.url}/login`)
    await signIn(reader.page, user)
    await reader.page.waitForURL((url) => url.pathname !== '/login')
    return { user, reader }
  }

  test('who is signed in sends requests with the sign-in, and the page can read no token', async () => {
    const { reader } = await signedIn()
    const page = await openActive(reader)
    const sent = page.waitForRequest(`${site.url}/api/v1/relay/active`)
    await send(page)
    await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/200 OK/)
    expect((await sent).headers().authorization).toBeUndefined()
    expect(await page.evaluate('document.cookie')).toBe('')
    const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
    const [cookie] = (await reader.context.cookies(site.url)).filter(({ name }) => name === 'svc_session')
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    for (const text of [stored, await page.content()]) expect(text).not.toContain(cookie?.value)
    expect(reader.faults).toEqual([])
    await reader.context.close()
  })

  test('whose access token expires while the page is open sends the request with the next one', async () => {
    const { reader } = await signedIn()
    const page = await openActive(reader)
    const [cookie] = (await reader.context.cookies(site.url)).filter(({ name }) => name === 'svc_session')
    if (!cookie) throw new Error('the visitor has no session')
    await reader.context.addCookies([{ ...cookie, value: looksLikeAccessToken(-1) }])
    await send(page)
    await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/200 OK/)
    await reader.context.close()
  })

  test('who gets a 401 that is not from the API sees it, and the sign-in is not renewed', async () => {
    const { reader } = await signedIn()
    const page = await openActive(reader)
    const renewals: Request[] = []
    page.on('request', (request) => void (request.url().endsWith('/auth/refresh') && renewals.push(request)))
    await page.route('**/api/v1/relay/active', (route) => route.fulfill({ status: 401, body: '<h1>Proxy</h1>' }))
    await send(page)
    await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/401/)
    expect(renewals).toEqual([])
    await reader.context.close()
  })

  test('who is signed out signs in from the page and comes back to it', async () => {
    const user = await api.given.user()
    const reader = await visitor({ device: 'phone' })
    const page = await openActive(reader)
    await send(page)
    await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/401/)
    await page.reload()
    await page
      .getByRole('complementary', { name: 'Access' })
      .getByRole('link', { name: 'Sign in', exact: true })
      .click()
    await signIn(page, user)
    await page.waitForURL(`${site.url}/docs`)
    expect(await page.getByRole('complementary', { name: 'Access' }).innerText()).toContain('You are signed in')
    await reader.context.close()
  })
})

test('a visitor of the API finds the operation that returns a token, and sends a request with it', async () => {
  const user = await api.given.user()
  const { page, context } = await open(api.url, active)
  await page.getByRole('complementary', { name: 'Access' }).getByRole('link').click()
  await testButton(page, 'auth/login').waitFor()
  await page.goto(`${api.url}/docs#tag/${active}`)
  await testButton(page, 'relay/active').click()
  await page.getByRole('dialog').getByPlaceholder('Token').fill(user.bearer)
  await send(page)
  await expect.poll(() => page.getByRole('dialog').innerText()).toMatch(/200 OK/)
  await context.close()
})

test('a start that is tried out has a key of its own and no optional parameter', async () => {
  const { page, context } = await open(api.url, 'relays/POST/api/v1/relay/start')
  await testButton(page, 'relay/start').click()
  const keys: (string | undefined)[] = []
  for (const _ of ['once', 'after a reload']) {
    const sent = page.waitForRequest((request) => request.url() === `${api.url}/api/v1/relay/start`)
    await send(page)
    keys.push((await sent).headers()['idempotency-key'])
    await page.reload()
    await testButton(page, 'relay/start').click()
  }
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), expect.stringMatching(/^[0-9a-f-]{36}$/)])
  expect(keys[0]).not.toBe(keys[1])
  await context.close()
})

test.each([
  ['phone', 'dark'],
  ['phone', 'light'],
  ['desktop', 'light'],
  ['desktop', 'dark'],
] as const)('is accessible on a %s in its %s colours', async (device, scheme) => {
  for (const [, origin] of origins) {
    const { page, context } = await open(origin, capacity, { device, scheme })
    await testButton(page, 'capacity/status').waitFor()
    // Scalar draws its elements one after another, with colours that change gradually.
    const violations = async () =>
      (await findViolations(page)).map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])
    await expect.poll(violations, { interval: 1000 }).toEqual([])
    await context.close()
  }
})
