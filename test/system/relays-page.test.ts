/** What the relays page shows of a stream, its size, and the journey of a streamer with a keyboard only. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { atEnd } from '../support/at-end.ts'
import { eventually } from '../support/relays.ts'
import { tabTo, waitForNotice, waitForPage } from './browser.ts'
import { kitStep, start, startButton, startDashboard, stopButton, stopNowButton } from './streamers.ts'

const pingUrl = await startPingServer()
const regions = JSON.stringify([
  { region: 'fra', display_name: 'Frankfurt', provider: 'local', default: true, ping_url: pingUrl },
  { region: 'pdx', display_name: 'Oregon', provider: 'local' },
])
const { api, url, streamer, report, reportOf, readyRelay } = await startDashboard({ SVC_REGIONS: regions })

async function startPingServer(): Promise<string> {
  const server = createServer((_, response) => void response.writeHead(204).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/ping`
}

const stream = { publishing: true, bitrate_kbps: 5200, links: 3, bytes_total: 1_000_000 }
const isOpen = async (page: Page, name: 'phone' | 'obs') => (await kitStep(page, name).getAttribute('open')) !== null
const openSteps = async (page: Page) => [await isOpen(page, 'phone'), await isOpen(page, 'obs')]

test('the latency of a region with a ping address is measured, and of no other region', async () => {
  const { page } = await streamer()
  const latency = page.locator('[data-ping]')
  await expect.poll(() => latency.textContent()).toMatch(/\b\d+ ms\b/)
  expect(await latency.count()).toBe(1)
  expect(await page.locator('label', { has: page.locator('[value="fra"]') }).textContent()).toContain(' ms')
})

test('the steps of the connection kit open when a relay becomes ready, and stay as the visitor has left them', async () => {
  const { page, user, faults } = await streamer()
  await start(page)
  await eventually(user.active, ({ session }) => session?.instance_id != null)
  await kitStep(page, 'phone').waitFor()
  expect(await openSteps(page)).toEqual([false, false])
  await report(user)
  await page.locator('[data-first-video]').waitFor()
  expect(await openSteps(page)).toEqual([true, true])

  await kitStep(page, 'phone').locator(':scope > summary').click()
  expect(await openSteps(page)).toEqual([false, true])
  await user.stop({ connection_id: 'default' })
  await stopNowButton(page).waitFor()
  await user.start()
  await page.locator('[data-first-video]').waitFor()
  expect(await openSteps(page)).toEqual([false, true])
  expect(faults.filter((fault) => !fault.includes(pingUrl))).toEqual([])
})

test('each step of the connection kit closes when the service sees what it leads to, and stays closed', async () => {
  const { page, user } = await readyRelay()
  expect(await openSteps(page)).toEqual([true, true])
  await report(user, stream)
  await expect.poll(() => openSteps(page)).toEqual([false, true])
  await report(user, { ...stream, players: 1 })
  await expect.poll(() => openSteps(page)).toEqual([false, false])
  expect(await page.locator('[data-kit-state="done"]:visible').count()).toBe(2)

  // OBS is closed, and the visitor does not need its address.
  await report(user, stream)
  await page.locator('[data-signal="obs"][data-code="no_player"]').waitFor()
  expect(await openSteps(page)).toEqual([false, false])
})

/** The names of the first steps that are done. */
const doneSteps = (page: Page) =>
  page.locator('[data-step][data-done="true"]').evaluateAll((steps) => steps.map((step) => step.dataset.step))

test('the first steps get their ticks without a reload, and go when all are done', async () => {
  const { page, user, faults } = await streamer()
  await page.evaluate('window.isSameDocument = true')
  expect(await doneSteps(page)).toEqual(['plan'])
  await user.start()
  await expect.poll(() => doneSteps(page)).toEqual(['plan', 'relay'])
  await report(user)
  await report(user, stream)
  await expect.poll(() => doneSteps(page)).toEqual(['plan', 'relay', 'phone'])
  await report(user, { ...stream, players: 1 })
  await expect.poll(() => doneSteps(page)).toEqual(['plan', 'relay', 'phone', 'obs'])
  // The link is opened in a mail program, and the visitor comes back.
  await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
  await page.locator('[data-step]').first().waitFor({ state: 'detached' })
  expect(await page.evaluate('window.isSameDocument')).toBe(true)
  expect(faults.filter((fault) => !fault.includes(pingUrl))).toEqual([])
})

test('the step of the phone is closed where a relay has received video', async () => {
  const { page, user } = await readyRelay()
  await report(user, { ...stream, players: 1 })
  await page.reload()
  await page.locator('[data-signal="phone"] [data-bitrate]').waitFor()
  expect(await openSteps(page)).toEqual([false, false])
  expect(await page.locator('.badge.live').textContent()).toBe('Live')
})

test('the bitrate of the last ten minutes is drawn, with its figures as text', async () => {
  const { page, user } = await readyRelay()
  await report(user, stream)
  const { session } = await user.active()
  await api.sql`update relay_health set recent_slot = recent_slot - 1 where session_id = ${session?.session_id ?? ''}`
  await report(user, { ...stream, bitrate_kbps: 2600 })
  await page.reload()
  const chart = page.locator('[data-sparkline]')
  await chart.waitFor()
  expect((await chart.locator('polyline').boundingBox())?.width).toBeGreaterThan(1)
  expect(await chart.locator('figcaption').textContent()).toBe(
    'Last 10 minutes: 2.6 Mbps to 5.2 Mbps, 3.9 Mbps on average',
  )
})

test('after a stop the page says why the relay ended, and starts it again', async () => {
  const { page, user } = await readyRelay()
  await user.stop({ connection_id: 'default', immediate: true })
  const ended = page.locator('[data-ended]')
  await ended.waitFor()
  expect(await ended.getAttribute('data-reason')).toBe('stop_requested')
  expect(await ended.textContent()).toContain('You stopped it.')
  await ended.getByRole('button', { name: 'Start again default' }).click()
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect(await page.locator('[data-ended]').count()).toBe(0)
})

test('a start with the name of a running relay is reported', async () => {
  const { page } = await readyRelay()
  await page.getByLabel('Name').fill('default')
  await startButton(page).click()
  await waitForNotice(page, 'relay_already_running')
  expect(await page.getByRole('article').count()).toBe(1)
})

test('on a phone the button that opens the app comes before the code, on a computer the code comes first', async () => {
  const topsOn = async (device: 'phone' | 'desktop') => {
    const { page } = await readyRelay({ device })
    const moblin = page.locator('[data-app="moblin"]')
    // Only a touch screen has the app on the same device.
    const elements = [moblin.locator(device === 'phone' ? '[data-follow]' : '[data-copy]'), moblin.locator('summary')]
    for (const element of elements) await element.waitFor()
    return Promise.all(elements.map(async (element) => (await element.boundingBox())?.y ?? 0))
  }
  const [[button = 0, code = 0], [copy = 0, codeOnDesktop = 0]] = [await topsOn('phone'), await topsOn('desktop')]
  expect(button).toBeLessThan(code)
  expect(codeOnDesktop).toBeLessThan(copy)
})

test('a name that is being entered survives an update of the page', async () => {
  const { page, user } = await streamer()
  await page.getByLabel('Name').fill('backpack')
  await page.getByRole('heading', { level: 1 }).click()
  await user.start()
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect(await page.getByLabel('Name').inputValue()).toBe('backpack')
})

test('a relay is started, connected to and stopped with the keyboard alone', async () => {
  const { page, context, user } = await streamer()
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
  await tabTo(page, '#connection_id')
  await page.keyboard.press('Enter')
  await page.getByRole('article', { name: 'default' }).waitFor()
  await report(user)
  await page.locator('.kit[data-kit="phone"][open]').waitFor()

  await tabTo(page, '.app-tabs input')
  for (let step = 0; step < 3; step += 1) await page.keyboard.press('ArrowRight')
  expect(await kitStep(page, 'phone').locator('.app:visible').getAttribute('data-app')).toBe('belabox')
  await tabTo(page, '[data-copy^="belabox-stream-"]')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toMatch(/^publish\/live\/\w{8}$/)

  await page.reload()
  await tabTo(page, '[id^="stop-"]')
  await page.keyboard.press('Enter')
  await stopNowButton(page).waitFor()
  await tabTo(page, '[id^="stop-"]')
  await page.keyboard.press('Enter')
  await page.locator('[data-session="none"]').waitFor()
})

test('a relay that ended is found, and the usage shown as a table, with the keyboard alone', async () => {
  const { page, user } = await readyRelay()
  const { session_id = '' } = (await user.active()).session ?? {}
  await user.stop({ connection_id: 'default', immediate: true })
  await tabTo(page, 'a[href="/history"]')
  await page.keyboard.press('Enter')
  await waitForPage(page, 'history')
  await tabTo(page, `a[href$="${session_id}"]`)
  await page.keyboard.press('Enter')
  await waitForPage(page, 'history-session')
  await tabTo(page, 'a[href="/usage"]')
  await page.keyboard.press('Enter')
  await waitForPage(page, 'usage')
  await tabTo(page, 'main details > summary')
  await page.keyboard.press('Enter')
  await page.locator('main details table').waitFor()
})

const budgetBytes = 100_000

test('the page with four relays transfers less than 100 kB and shows them without a script', async () => {
  const { page, user, context } = await streamer()
  for (const connection_id of ['one', 'two', 'three', 'four']) {
    const { session_id } = (await user.start({ connection_id })).body.session
    await reportOf(session_id, stream)
    await api.sql`update relay_health set recent_bitrate_kbps = array_fill(5000, array[60]) where session_id = ${session_id}`
    await reportOf(session_id, stream)
  }
  await eventually(user.active, ({ sessions }) => sessions.every(({ state }) => state === 'active'))
  const browser = await context.newCDPSession(page)
  await browser.send('Network.enable')
  await browser.send('Network.setCacheDisabled', { cacheDisabled: true })
  let bytes = 0
  browser.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  await page.reload({ waitUntil: 'networkidle' })
  expect(await page.locator('[data-sparkline]').count()).toBe(4)
  expect(await page.locator('.kit [data-copy]').count()).toBe(52)
  expect(bytes).toBeGreaterThan(20_000)
  expect(bytes).toBeLessThan(budgetBytes)

  await page.route('**/*.js', (route) => route.abort())
  await page.reload()
  expect(await page.locator('[data-sparkline]:visible').count()).toBe(4)
  expect(await stopButton(page).count()).toBe(4)
})
