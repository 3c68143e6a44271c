/** The chart of a whole evening in Chromium: zoom by keys, drag, buttons and touch, moments, and the shared page. */
import { expect, test } from 'vitest'
import { addEvening } from '../support/evenings.ts'
import { expectUsable, expectWithin, tabTo, visitor } from './browser.ts'
import { startDashboard } from './streamers.ts'

const { api, url, streamer, readyRelay, report } = await startDashboard()
const zone = 'Asia/Kolkata'
const hourMillis = 3_600_000

type Options = Parameters<typeof streamer>[0]

async function givenEvening(options: Options = {}, hours = 16) {
  const owner = await streamer({ timeZone: zone, ...options })
  const evening = await addEvening(api.sql, { userId: owner.user.userId, hours, connectionId: 'backpack' })
  const path = `${url}/history/${evening.id}`
  return { owner, page: owner.page, evening, path }
}

type Page = Awaited<ReturnType<typeof givenEvening>>['page']

const plot = (page: Page) => page.locator('[data-plot]')
const spanOf = async (page: Page) =>
  page.evaluate(
    `(() => { const { from, to } = document.querySelector('[data-evening]').dataset; return { from: Number(from), to: Number(to) } })()`,
  ) as Promise<{ from: number; to: number }>
const hoursShown = async (page: Page) => {
  const { from, to } = await spanOf(page)
  return (to - from) / hourMillis
}
const press = (page: Page, key: string) => page.keyboard.press(key)

/** From a click until the browser has painted what it led to, in milliseconds. */
const paintAfter = (page: Page, button: string) =>
  page.evaluate(`new Promise((resolve) => {
    const begunAt = performance.now()
    document.querySelector('[data-zoom="${button}"]').click()
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begunAt)))
  })`) as Promise<number>

test('16 hours are drawn within 300 ms, each time that they are drawn', async () => {
  const { page, path } = await givenEvening()
  await page.goto(`${path}?series=loss`)
  await page.locator('[data-evening][data-from]').waitFor()
  for (const button of ['in', 'reset', 'later']) expect(await paintAfter(page, button)).toBeLessThan(300)
  const points = await page.locator('[data-lines] polyline').first().getAttribute('points')
  expect(points?.split(' ').length).toBeLessThanOrEqual(1200)
})

test('keys, buttons and a drag zoom the chart, and all of it comes back', async () => {
  const { owner, page, path } = await givenEvening()
  await page.goto(path)
  await tabTo(page, '[data-plot]')
  expect(await hoursShown(page)).toBe(16)
  await press(page, '+')
  expect(await hoursShown(page)).toBe(8)
  const { from } = await spanOf(page)
  await press(page, 'ArrowRight')
  expect((await spanOf(page)).from - from).toBe(2 * hourMillis)
  await press(page, 'ArrowLeft')
  await press(page, '-')
  expect(await hoursShown(page)).toBe(16)
  await press(page, '-')
  expect(await hoursShown(page)).toBe(16)
  for (const [name, hours] of [
    ['Zoom in', 8],
    ['Later', 8],
    ['Zoom out', 16],
    ['Zoom in', 8],
    ['Show all', 16],
  ] as const) {
    await page.getByRole('button', { name, exact: true }).click()
    expect([name, await hoursShown(page)]).toEqual([name, hours])
  }
  const box = await plot(page).boundingBox()
  if (!box) throw new Error('the chart has no box')
  await page.mouse.move(box.x + box.width / 4, box.y + 20)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2, box.y + 60, { steps: 4 })
  await page.mouse.up()
  expect(await hoursShown(page)).toBeCloseTo(4, 1)
  expect(await page.locator('.selection').count()).toBe(0)
  await plot(page).focus()
  await press(page, '0')
  expect(await hoursShown(page)).toBe(16)
  await page.getByRole('link', { name: 'Loss', exact: true }).click()
  expect(await page.locator('[data-second] polyline').count()).toBe(1)
  expect(await page.locator('[data-second-label]').textContent()).toBe('Loss, up to 9 %')
  expect(owner.faults).toEqual([])
})

test('the page of a running session shows what comes in until it ends, and a part that is zoomed into stays', async () => {
  const { page, user, faults } = await readyRelay()
  const { session_id: id = '' } = (await user.active()).session ?? {}
  await api.sql`update relay_sessions set created_at = created_at - interval '1 hour' where id = ${id}`
  await page.clock.install()
  await page.goto(`${url}/history/${id}?series=players`)
  await page.locator('[data-record="empty"]').waitFor()
  const peakAfter = async (bitrate_kbps: number, players = 1) => {
    await report(user, { publishing: true, bitrate_kbps, players })
    await expectWithin(60_000, page, () => page.locator('[data-peak]').allTextContents()).toEqual([
      `Bitrate, up to ${bitrate_kbps / 1000}.0 Mbps`,
    ])
  }
  await peakAfter(3000)
  const begun = await spanOf(page)
  await peakAfter(5000, 2)
  expect(await page.locator('[data-second-label]').textContent()).toBe('Players, up to 2 players')
  const shown = await spanOf(page)
  expect([shown.from, shown.to > begun.to]).toEqual([begun.from, true])
  await page.getByRole('button', { name: 'Zoom in', exact: true }).click()
  const zoomed = await spanOf(page)
  // It is exchanged, which does not load the page again.
  await page.context().addCookies([{ name: 'svc_session', value: 'outdated', url }])
  await peakAfter(6000)
  expect(await spanOf(page)).toEqual(zoomed)
  for (const _ of ['first', 'second', 'third']) await page.getByRole('button', { name: 'Later', exact: true }).click()
  const last = await spanOf(page)
  await peakAfter(7000)
  const moved = await spanOf(page)
  expect([moved.from > last.from, moved.to > last.to]).toEqual([true, true])
  await user.stop({ connection_id: 'default', immediate: true })
  await expectWithin(60_000, page, () => page.locator('[data-final="true"]').count()).toBe(1)
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await page.clock.runFor(30_000)
  expect(requests).toEqual([])
  expect(faults).toEqual([])
})

test('two fingers zoom the chart, and one moves it', async () => {
  const { owner, page, path } = await givenEvening({ device: 'phone' })
  await page.goto(path)
  await plot(page).scrollIntoViewIfNeeded()
  const box = await plot(page).boundingBox()
  if (!box) throw new Error('the chart has no box')
  const client = await owner.context.newCDPSession(page)
  const y = box.y + box.height / 2
  const at = (...places: number[]) => places.map((place, id) => ({ x: box.x + place * box.width, y, id }))
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: ReturnType<typeof at>) =>
    client.send('Input.dispatchTouchEvent', { type, touchPoints })
  await send('touchStart', at(0.4, 0.6))
  for (const half of [0.15, 0.2, 0.3, 0.4]) await send('touchMove', at(0.5 - half, 0.5 + half))
  await send('touchEnd', [])
  await expect.poll(() => hoursShown(page)).toBeLessThan(6)
  const { from } = await spanOf(page)
  await send('touchStart', at(0.2))
  for (const place of [0.4, 0.6, 0.8]) await send('touchMove', at(place))
  await send('touchEnd', [])
  await expect.poll(async () => (await spanOf(page)).from).toBeLessThan(from)
})

test('a time of day is the moment that clocks of the visitor showed', async () => {
  const { page, path, evening } = await givenEvening({}, 4)
  const moment = new Date(evening.middle.getTime() + 60_000)
  const clock = moment.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: zone })
  await page.goto(`${path}?at=${clock}`)
  const notice = page.locator('[data-moment-text]')
  expect(await notice.textContent()).toContain(`${clock}:00`)
  expect(await notice.textContent()).toContain('Stream weak, 300 kbps (1 min earlier) · Stream lost (30 s earlier)')
  expect(await page.locator('line.moment').count()).toBe(1)
  expect(await hoursShown(page)).toBeCloseTo(1 / 3, 5)
  for (const invalid of ['25:61', 'moon']) {
    await page.goto(`${path}?at=${invalid}`)
    expect([await page.locator('line.moment').count(), await notice.isVisible()]).toEqual([0, false])
  }
  await page.goto(path)
  await page.locator('[data-event="stream_lost"] a').click()
  await page.waitForURL(/at=/)
  await notice.waitFor()
  expect(await notice.textContent()).toContain('Stream lost (at this moment)')
})

test('the page of an evening is accessible and fits small phones, with a moment and with its table', async () => {
  const { owner, page, path, evening } = await givenEvening({ device: 'phone' }, 4)
  await page.goto(`${path}?at=${evening.middle.toISOString()}&series=loss`)
  await page.locator('[data-record-table] > summary').click()
  await expectUsable(owner, 'evening')
})

test('the page of an evening is accessible and fits small phones when it shows a new link', async () => {
  const { owner, page, path } = await givenEvening({ device: 'phone' }, 1)
  await page.goto(path)
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.locator('#share-url').waitFor()
  await expectUsable(owner, 'evening-shared')
})

test('a shared evening opens without an account, zooms, and is accessible', async () => {
  const { page, path } = await givenEvening({}, 4)
  await page.goto(path)
  await page.getByRole('button', { name: 'Create link' }).click()
  const link = (await page.locator('#share-url').textContent()) ?? ''
  const guest = await visitor({ device: 'phone' })
  await guest.page.goto(link)
  expect(await guest.page.locator('h1').textContent()).toMatch(/^Stream of \d+ [A-Z][a-z]+$/)
  await guest.page.getByRole('button', { name: 'Zoom in' }).click()
  expect(await hoursShown(guest.page)).toBe(2)
  expect(await guest.page.locator('body').textContent()).not.toContain('backpack')
  await expectUsable(guest, 'shared')
})
