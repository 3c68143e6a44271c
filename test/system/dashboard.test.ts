/** The dashboard in a real browser: its actions, and secrets that viewers of a stream must not see. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { eventually } from '../support/relays.ts'
import { hide, news, openKit, start, startDashboard, state } from './streamers.ts'

const { api, url, streamer, report, readyRelay } = await startDashboard()

const seen = async (page: Page) => (await page.evaluate('document.body.innerText')) as string

test('a relay becomes ready without a reload, a layout shift or a loss of focus', async () => {
  const { page, user, faults } = await streamer({ device: 'phone' })
  await start(page)
  expect(await state(page).textContent()).toBe('Starting')
  await page.evaluate('window.isStillThis = true')
  await page.getByRole('button', { name: 'Stop default' }).focus()
  const before = await page.getByRole('heading', { name: 'Start a relay' }).boundingBox()

  await report(user)
  await expect.poll(() => state(page).textContent(), { timeout: 15_000 }).toBe('Ready')
  expect(await news(page).textContent()).toBe('“default”: Ready')
  expect(await page.evaluate('[window.isStillThis, document.activeElement.textContent]')).toEqual([
    true,
    'Stop default',
  ])
  expect(await page.getByRole('heading', { name: 'Start a relay' }).boundingBox()).toEqual(before)
  await page.getByText('Connect your software').waitFor()
  expect(faults).toEqual([])
})

test('a double tap on Start starts one relay', async () => {
  const { page, user } = await streamer()
  await page.getByRole('button', { name: 'Start', exact: true }).dblclick()
  await page.getByRole('article', { name: 'default' }).waitFor()
  expect((await user.active()).sessions).toHaveLength(1)
})

test('a stop shows a countdown, can be undone, and can be executed at once', async () => {
  const { page, user } = await readyRelay()
  await page.getByRole('button', { name: 'Stop default' }).dblclick()
  await page.getByRole('button', { name: 'Stop now' }).waitFor()
  expect(await state(page).textContent()).toBe('Stopping')
  const left = async () => Number((await page.getByRole('timer').textContent())?.split(':').at(-1))
  const first = await left()
  expect(first).toBeGreaterThan(20)
  await expect.poll(left, { timeout: 5000 }).toBeLessThan(first)

  await page.getByRole('button', { name: 'Go on with default' }).click()
  await expect.poll(() => state(page).textContent()).toBe('Ready')
  await page.getByRole('button', { name: 'Stop default' }).click()
  await page.getByRole('button', { name: 'Stop now' }).click()
  await page.getByText('You have no relay running.').waitFor()
  expect((await user.active()).sessions).toEqual([])
})

test('a relay that is stopped elsewhere disappears from the page without losing the focus', async () => {
  const { page, user } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await page.getByRole('button', { name: 'Stop default' }).focus()
  await user.stop({ connection_id: 'default', immediate: true })
  await eventually(user.active, ({ sessions }) => sessions.length === 0)
  await page.clock.runFor(10_000)
  await page.getByText('You have no relay running.').waitFor()
  expect(await news(page).textContent()).toBe('“default” has stopped.')
  expect(await page.evaluate('document.activeElement.id')).toBe('relays')
})

test('the focus moves to the heading above a button that disappears', async () => {
  const { page, user } = await streamer()
  const focus = () => page.evaluate('document.activeElement.textContent')
  await page.clock.install()
  await page.reload()
  await page.getByRole('button', { name: 'Start', exact: true }).focus()
  await user.start()
  await page.clock.runFor(4000)
  await expect.poll(focus).toBe('Start a relay')

  await report(user)
  await eventually(user.active, ({ session }) => session?.state === 'active')
  await page.getByRole('button', { name: 'Stop default' }).click()
  await page.getByRole('button', { name: 'Go on with default' }).focus()
  await user.start()
  await page.clock.runFor(4000)
  await expect.poll(focus).toBe('default')
})

test('an address can be copied without revealing it', async () => {
  const { page, context, token, faults } = await readyRelay({ device: 'phone' })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
  await openKit(page, 'BELABOX')
  await page.getByRole('button', { name: 'Copy Stream id' }).click()
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(`publish/live/${token}`)
  expect(await news(page).textContent()).toBe('Copied Stream id')
  await page.locator('.software > summary', { hasText: 'Moblin' }).click()
  await page.getByRole('button', { name: 'Copy link for Moblin' }).click()
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toMatch(/^moblin:\/\/\?%7B.*/)
  expect(await seen(page)).not.toContain(token)
  expect(faults).toEqual([])
})

test('a revealed secret is masked after a minute, and at once when the page is hidden', async () => {
  const { page, token } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await openKit(page, 'BELABOX')
  const show = page.locator('summary', { hasText: 'Stream id' })
  await show.click()
  expect(await seen(page)).toContain(token)
  await page.clock.runFor(58_000)
  expect(await seen(page)).toContain(token)
  await page.clock.runFor(3000)
  expect(await seen(page)).not.toContain(token)

  await show.click()
  expect(await seen(page)).toContain(token)
  await hide(page, true)
  expect(await seen(page)).not.toContain(token)
})

test('one tap opens the app on this phone with the settings, without revealing them', async () => {
  const { page, context, user, token } = await readyRelay({ device: 'phone' })
  const browser = await context.newCDPSession(page)
  await browser.send('Page.enable')
  const wanted: string[] = []
  browser.on('Page.frameRequestedNavigation', ({ url }) => void wanted.push(url))
  await openKit(page, 'Moblin')
  await page.getByRole('button', { name: 'Open in Moblin' }).click()
  await expect.poll(() => wanted).toHaveLength(1)
  const { streams } = JSON.parse(decodeURIComponent(wanted[0]?.split('?').slice(1).join('?') ?? ''))
  expect(streams).toMatchObject([{ url: (await user.active()).session?.connect?.srtla_url }])
  expect(await seen(page)).not.toContain(token)
})

test('the scroll position stays while the relay changes', async () => {
  const { page, user, token } = await readyRelay()
  await page.clock.install()
  await page.reload()
  await openKit(page, 'OBS')
  await page.locator('summary', { hasText: 'Show Input' }).click()
  await user.stop({ connection_id: 'default' })
  await eventually(user.active, ({ session }) => session?.state === 'grace')
  await page.clock.runFor(10_000)
  await expect.poll(() => state(page).textContent()).toBe('Stopping')
  expect(await seen(page)).toContain(`streamid=play/live/${token}&latency=2000000`)
})

test('no visible text and no accessible name contains a secret before it is revealed', async () => {
  const { page, token } = await readyRelay()
  await page.getByText('Connect your software').click()
  for (const software of await page.locator('.software > summary').all()) await software.click()
  await expect.poll(() => page.locator('[data-copy]:visible').count()).toBe(11)
  expect(await seen(page)).not.toContain(token)
  expect(await page.locator('main').ariaSnapshot()).not.toContain(token)
  expect(await page.title()).not.toContain(token)
})

test('relays can be started, monitored, connected to and stopped without scripts', async () => {
  const { page, user, token } = await readyRelay({ device: 'phone', script: false })
  await openKit(page, 'BELABOX')
  expect(await page.locator('.scripted:visible').count()).toBe(0)
  await page.locator('summary', { hasText: 'Stream id' }).click()
  await page.getByText(`publish/live/${token}`, { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Stop default' }).click()
  await page.getByRole('button', { name: 'Stop now' }).click()
  await page.getByRole('link', { name: 'Refresh' }).click()
  await page.getByText('You have no relay running.').waitFor()
  expect((await user.active()).sessions).toEqual([])
})

test('another sign-in can be ended on the account page', async () => {
  const { page, user } = await streamer({ device: 'phone' })
  const plugin = await api.given.signIn(user, 'OBS at home')
  await page.getByRole('link', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out OBS at home' }).click()
  await page.getByText('Signed out there.').waitFor()
  expect((await api.get('/auth/session', { bearer: plugin.bearer })).status).toBe(401)
})
