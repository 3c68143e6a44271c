/** The dashboard in Chromium: live updates, focus, countdowns, and hiding addresses while the screen is shared. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { eventually } from '../support/relays.ts'
import { expectWithin, stopClock, waitForNotice, waitWithin } from './browser.ts'
import {
  announcement,
  keepRunningButton,
  noRelays,
  openKit,
  setHidden,
  start,
  startButton,
  startDashboard,
  state,
  stopButton,
  stopNowButton,
} from './streamers.ts'

const { api, url, streamer, report, readyRelay } = await startDashboard()

const visibleText = async (page: Page) => (await page.evaluate('document.body.innerText')) as string
const focusedId = (page: Page) => page.evaluate('document.activeElement.id')

test('a relay becomes active without a reload, a layout shift or a change of focus', async () => {
  const { page, user, faults } = await streamer({ device: 'phone' })
  await start(page)
  expect(await state(page)).toBe('provisioning')
  await page.evaluate('window.isSameDocument = true')
  await stopButton(page).focus()
  const focused = await focusedId(page)
  expect(focused).toMatch(/^stop-/)
  const before = await stopButton(page).boundingBox()

  await report(user)
  await expect.poll(() => state(page)).toBe('active')
  expect(await announcement(page)).toContain('default')
  expect(await page.evaluate('window.isSameDocument')).toBe(true)
  expect(await focusedId(page)).toBe(focused)
  expect(await stopButton(page).boundingBox()).toEqual(before)
  await page.locator('.kit[data-kit="phone"][open]').waitFor()
  expect(faults).toEqual([])
})

test('a double click on the start button starts one relay', async () => {
  const { page, user } = await streamer()
  await startButton(page).dblclick()
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect((await user.active()).sessions).toHaveLength(1)
})

test('a stop counts down, is taken back, and is immediate with the second button', async () => {
  const { page, user } = await readyRelay()
  await stopButton(page).dblclick()
  await stopNowButton(page).waitFor()
  expect(await state(page)).toBe('grace')
  const secondsLeft = async () =>
    Number(/(\d+) seconds/.exec((await page.locator('article .countdown').textContent()) ?? '')?.[1])
  const first = await secondsLeft()
  expect(first).toBeGreaterThan(20)
  await expect.poll(secondsLeft).toBeLessThan(first)

  await keepRunningButton(page).click()
  await expect.poll(() => state(page)).toBe('active')
  await stopButton(page).click()
  await stopNowButton(page).click()
  await noRelays(page)
  expect((await user.active()).sessions).toEqual([])
})

test('a relay that is stopped elsewhere disappears, and its focus moves to the heading', async () => {
  const { page, user } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await stopButton(page).focus()
  await user.stop({ connection_id: 'default', immediate: true })
  await eventually(user.active, ({ sessions }) => sessions.length === 0)
  await waitWithin(10_000, page, page.locator('[data-session="none"]'))
  expect(await announcement(page)).toContain('default')
  expect(await focusedId(page)).toBe('relays')
})

test('the focus of a button that disappears moves to the heading of its part', async () => {
  const { page, user } = await streamer()
  await page.clock.install()
  await page.reload()
  await startButton(page).focus()
  await user.start()
  await expectWithin(4000, page, () => focusedId(page)).toBe('start')

  await report(user)
  await eventually(user.active, ({ session }) => session?.state === 'active')
  await stopButton(page).click()
  await keepRunningButton(page).focus()
  await user.start()
  await expectWithin(4000, page, () => focusedId(page)).toMatch(/^name-/)
})

test('an address is copied without being shown', async () => {
  const { page, context, token, faults } = await readyRelay({ device: 'phone' })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
  const clipboard = () => page.evaluate('navigator.clipboard.readText()')
  await openKit(page, 'BELABOX')
  await page.locator('[data-copy^="belabox-stream-"]').click()
  await expect.poll(clipboard).toBe(`publish/live/${token}`)
  expect(await announcement(page)).not.toBe('')
  await openKit(page, 'Moblin')
  await page.locator('[data-copy^="moblin-"]').click()
  await expect.poll(clipboard).toMatch(/^moblin:\/\/\?%7B.*/)
  expect(await visibleText(page)).not.toContain(token)
  expect(faults).toEqual([])
})

test('a shown address is hidden after a minute, and when the page is hidden', async () => {
  const { page, token } = await readyRelay()
  await stopClock(page)
  await page.reload()
  await openKit(page, 'BELABOX')
  const show = page.locator('details[data-secret]:has([id^="belabox-stream-"]) > summary')
  // The minute begins with the event, which comes some time after the click. This listener is called after the page's.
  const begun = page.evaluate("new Promise((done) => document.addEventListener('toggle', () => done(), true))")
  await show.click()
  await begun
  expect(await visibleText(page)).toContain(token)
  await page.clock.runFor(59_000)
  expect(await visibleText(page)).toContain(token)
  await page.clock.runFor(1000)
  expect(await visibleText(page)).not.toContain(token)

  await show.click()
  expect(await visibleText(page)).toContain(token)
  await setHidden(page, true)
  expect(await visibleText(page)).not.toContain(token)
})

test('a deep link opens the app without showing the settings', async () => {
  const { page, context, user, token } = await readyRelay({ device: 'phone' })
  const browser = await context.newCDPSession(page)
  await browser.send('Page.enable')
  const navigations: string[] = []
  browser.on('Page.frameRequestedNavigation', ({ url }) => void navigations.push(url))
  await openKit(page, 'Moblin')
  await page.locator('[data-follow^="moblin-"]').click()
  await expect.poll(() => navigations).toHaveLength(1)
  const { streams } = JSON.parse(decodeURIComponent(navigations[0]?.split('?').slice(1).join('?') ?? ''))
  expect(streams).toMatchObject([{ url: (await user.active()).session?.connect?.srtla_url }])
  expect(await visibleText(page)).not.toContain(token)
})

test('a shown address stays open while the state of the relay changes', async () => {
  const { page, user } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await openKit(page, 'OBS')
  await page.locator('details[data-secret]:has([id^="obs-"]) > summary').click()
  await user.stop({ connection_id: 'default' })
  await eventually(user.active, ({ session }) => session?.state === 'grace')
  await expectWithin(10_000, page, () => state(page)).toBe('grace')
  const { connect } = (await user.active()).session ?? {}
  expect(await visibleText(page)).toContain(`${connect?.player_url}&latency=2000000`)
})

test('neither visible text nor accessible names contain a secret until it is shown', async () => {
  const { page, user, token } = await readyRelay()
  const { connect } = (await user.active()).session ?? {}
  const secrets = [token, connect?.player_url.split('/').at(-1) ?? '']
  const expectNoSecret = (text: string) => {
    for (const secret of secrets) expect(text).not.toContain(secret)
  }
  let copyButtons = 0
  for (const software of ['Moblin', 'IRL Pro', 'Larix', 'BELABOX', 'OBS', 'Scene switchers', 'Overlays', 'Other']) {
    const step = await openKit(page, software)
    copyButtons += await step.locator('[data-copy]:visible').count()
    expectNoSecret(await visibleText(page))
    expectNoSecret(await page.locator('main').ariaSnapshot())
  }
  expect(copyButtons).toBe(13)
  expectNoSecret(await page.title())
})

test('without scripts relays are started, connected to and stopped', async () => {
  const { page, user, token } = await readyRelay({ device: 'phone', script: false })
  await openKit(page, 'BELABOX')
  expect(await page.locator('.scripted:visible').count()).toBe(0)
  await page.locator('details[data-secret]:has([id^="belabox-stream-"]) > summary').click()
  await page.getByText(`publish/live/${token}`, { exact: true }).waitFor()
  expect(await page.locator('a[href$="/qr/moblin.svg"]').count()).toBe(1)
  await stopButton(page).click()
  await stopNowButton(page).click()
  await page.locator('main a[href="/relays"]').click()
  await noRelays(page)
  expect((await user.active()).sessions).toEqual([])
})

test('another sign-in is ended on the security page', async () => {
  const { page, user } = await streamer({ device: 'phone' })
  const plugin = await api.given.signIn(user, 'OBS at home')
  await page.goto(`${url}/account/security`)
  await page.getByRole('button', { name: /OBS at home/ }).click()
  await waitForNotice(page, 'signed_out')
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(401)
})
