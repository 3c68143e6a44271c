/** How the relays page updates itself, during failures of the network, the service and the sign-in too. */
import type { Page, WebSocketRoute } from 'playwright-core'
import { expect, test } from 'vitest'
import { writeAge } from '../support/relay-rows.ts'
import { expectWithin, pageNamed, stopClock, waitWithin } from './browser.ts'
import { announcement, setHidden, startButton, startDashboard } from './streamers.ts'

const { api, streamer, report, readyRelay } = await startDashboard()

const freshness = (page: Page) => page.locator('[data-freshness]')

/** Shown while the page is outdated. */
const outdated = (page: Page) => freshness(page).filter({ hasText: /\d\d:\d\d:\d\d/ })

/** To detect whether the page was reloaded. */
const markDocument = (page: Page) => page.evaluate('window.isSameDocument = true')
const isSameDocument = (page: Page) => page.evaluate('window.isSameDocument === true')

const revokeSignIns = (userId: string) =>
  api.sql`update auth_sessions set revoked_at = now(), revoked_for = 'revoked' where user_id = ${userId}`

test('a change is shown at once, without waiting for the next poll', async () => {
  const { page, user, faults } = await streamer()
  await page.clock.install()
  const opened = page.waitForEvent('websocket')
  await page.reload()
  await page.clock.runFor(3500)
  const socket = await opened
  expect(new URL(socket.url()).pathname).toBe('/api/v1/relay/ws')
  // The next poll is half a minute away.
  await user.start()
  await page.getByRole('article', { name: 'default' }).waitFor()
  // Changes within two seconds share one fetch of the page.
  await page.clock.runFor(2000)
  await user.stop({ connection_id: 'default', immediate: true })
  await page.getByRole('article', { name: 'default' }).waitFor({ state: 'detached' })
  expect(faults).toEqual([])
})

test('the warning of the longest duration appears at its time without a reload, and is announced', async () => {
  const { page, user, faults } = await readyRelay()
  const { session_id = '' } = (await user.active()).session ?? {}
  await page.clock.install()
  const opened = page.waitForEvent('websocket')
  // After 16 hours it may end as idle, and the last hour before that begins in a few seconds.
  await writeAge(api.sql, session_id, 15 * 3600 - 15)
  await page.reload()
  await markDocument(page)
  const warning = page.locator('[data-ending-soon]')
  expect(await warning.count()).toBe(0)
  await page.clock.runFor(3500)
  await opened
  // The next poll is half a minute away, so the change arrives over the socket.
  await warning.waitFor()
  const endsAt = (await user.active()).session?.ends_at ?? ''
  expect(await warning.getAttribute('data-ending-soon')).toBe(endsAt)
  expect(await warning.textContent()).toContain('At a good moment, stop it and start it again.')
  expect(await announcement(page)).toBe('default: This relay may end soon.')
  expect(await isSameDocument(page)).toBe(true)
  expect(faults).toEqual([])
})

test('a page whose socket was closed polls, and opens another one', async () => {
  const { page, user } = await streamer()
  let sockets = 0
  await page.routeWebSocket('**/api/v1/relay/ws', (route) => {
    sockets += 1
    // After the page was informed that it is open.
    if (sockets === 1) setTimeout(() => route.close({ code: 1001 }), 200)
    else route.connectToServer()
  })
  await page.reload()
  await expect.poll(() => sockets).toBe(2)
  await user.start()
  await page.getByRole('article', { name: 'default' }).waitFor()
})

test('a hidden page does not poll, and updates when it is shown', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  const requests: string[] = []
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') requests.push(new URL(request.url()).pathname)
  })
  await setHidden(page, true)
  await page.clock.runFor(120_000)
  expect(requests).toEqual([])
  await user.start()
  await setHidden(page, false)
  await page.getByRole('article', { name: 'default' }).waitFor()
  // The instance of the relay may be bound meanwhile, which causes another poll.
  expect(requests.slice(0, 2)).toEqual(['/api/v1/relay/active', '/relays'])
})

test('the page obeys Retry-After, and shows the time of its last update', async () => {
  const { page } = await streamer()
  await stopClock(page)
  let requests = 0
  await page.route('**/api/v1/relay/active*', async (route) => {
    requests += 1
    await route.fulfill({ status: 429, headers: { 'Retry-After': '40' } })
  })
  await page.reload()
  await page.clock.runFor(3500)
  await outdated(page).waitFor()
  await page.clock.runFor(38_000)
  expect(requests).toBe(1)
  await page.unroute('**/api/v1/relay/active*')
  await page.clock.runFor(3000)
  await expect.poll(() => freshness(page).textContent()).toBe('')
})

test('the bitrate of a stream appears and changes without a reload, and a page without changes is not fetched', async () => {
  const { page, user } = await readyRelay()
  // What the list waits for may happen elsewhere, so the page is fetched while it is open.
  await page.locator('form[action="/relays/hide-first-steps"] button').click()
  await page.locator('[data-step]').first().waitFor({ state: 'detached' })
  await stopClock(page)
  await page.reload()
  await markDocument(page)
  const fetched: string[] = []
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') fetched.push(new URL(request.url()).pathname)
  })
  const text = () => page.locator('[data-signal="phone"] .signal-text').textContent()
  for (const [bitrate_kbps, shown] of [
    [5200, 'Receiving 5.2 Mbps over 3 links'],
    [640, 'Receiving 640 kbps over 3 links'],
  ] as const) {
    await report(user, { publishing: true, bitrate_kbps, links: 3 })
    await expectWithin(30_500, page, text).toBe(shown)
  }
  await report(user, { publishing: false })
  await waitWithin(30_500, page, page.locator('[data-signal="phone"][data-code="no_caller"]'))
  fetched.length = 0
  await expectWithin(30_500, page, async () => fetched).toEqual(['/api/v1/relay/active'])
  await page.clock.runFor(25_000)
  expect(fetched).toEqual(['/api/v1/relay/active'])
  expect(await isSameDocument(page)).toBe(true)
})

test('figures that arrive over the socket are shown without fetching the page', async () => {
  const { page, user, faults } = await readyRelay()
  await report(user, { publishing: true, bitrate_kbps: 5200, links: 3 })
  const { session } = await user.active()
  // Without the server behind it, whose first message could arrive after the one of this test.
  const opened = new Promise<WebSocketRoute>((resolve) => {
    void page.routeWebSocket('**/api/v1/relay/ws', resolve)
  })
  await page.clock.install()
  await page.reload()
  await page.clock.runFor(3500)
  const socket = await opened
  const fetched: string[] = []
  page.on('request', (request) => fetched.push(new URL(request.url()).pathname))
  const ingest = { ...session?.ingest, bitrate_kbps: 7340, links: 1, repeat_pct: 12.4 }
  socket.send(JSON.stringify({ type: 'session', session: { ...session, ingest } }))
  await expect
    .poll(() => page.locator('[data-signal="phone"] .signal-text').textContent())
    .toBe('Receiving 7.3 Mbps over 1 link, 12 of 100 packets repeated')
  expect(fetched).toEqual([])
  expect(faults).toEqual([])
})

test('an expired access token is renewed without a reload, and a revoked sign-in leads to the login page', async () => {
  const { page, user, faults } = await streamer()
  await page.clock.install()
  await page.reload()
  const renewed = page.waitForResponse('**/api/v1/auth/refresh')
  await page.route('**/api/v1/relay/active*', (route) => route.fulfill({ status: 401 }), { times: 1 })
  await markDocument(page)
  await page.clock.runFor(3500)
  expect((await renewed).status()).toBe(200)
  await user.start()
  await waitWithin(11_000, page, page.getByRole('article', { name: 'default' }))
  expect(await isSameDocument(page)).toBe(true)

  await revokeSignIns(user.userId)
  await waitWithin(31_000, page, pageNamed(page, 'login'))
  expect(new URL(page.url()).searchParams.get('next')).toBe('/relays')
  expect(faults).toEqual([])
})

test('a renewal that fails temporarily is tried again without a reload', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  await markDocument(page)
  await page.route('**/api/v1/relay/active*', (route) => route.fulfill({ status: 401 }), { times: 2 })
  await page.route('**/api/v1/auth/refresh', (route) => route.fulfill({ status: 503 }), { times: 1 })
  const renewals: number[] = []
  page.on('response', (response) => {
    if (new URL(response.url()).pathname === '/api/v1/auth/refresh') renewals.push(response.status())
  })
  await waitWithin(3500, page, outdated(page))
  await user.start()
  await waitWithin(11_000, page, page.getByRole('article', { name: 'default' }))
  expect(renewals).toEqual([503, 200])
  expect(await isSameDocument(page)).toBe(true)
})

test('a poll without a reply times out and is repeated', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  // As after a phone changed its network.
  await page.route('**/api/v1/relay/active*', () => {}, { times: 1 })
  await waitWithin(49_500, page, outdated(page))
  await user.start()
  await waitWithin(4000, page, page.getByRole('article', { name: 'default' }))
})

test('a sign-in that ends on the page of a refused form leads to the login page without resubmitting the form', async () => {
  const { page, user } = await streamer({}, { addons: 0 })
  await user.start({ connection_id: 'plugin' })
  await page.clock.install()
  await startButton(page).click()
  await page.getByRole('alert').waitFor()
  const navigations: string[] = []
  page.on('request', (request) => {
    if (request.isNavigationRequest()) navigations.push(`${request.method()} ${new URL(request.url()).pathname}`)
  })
  await revokeSignIns(user.userId)
  await waitWithin(11_000, page, pageNamed(page, 'login'))
  expect(navigations.filter((navigation) => navigation.startsWith('POST'))).toEqual([])
  expect(new URL(page.url()).searchParams.get('next')).toBe('/relays')
})
