/** The times and days of pages in Chromium, for visitors far from UTC. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startDashboard } from './streamers.ts'

const { api, url, streamer, readyRelay } = await startDashboard()

/** All texts of times on the page, but for ages and countdowns, and the titles of the ages. */
async function timesOf(page: Page): Promise<string[]> {
  const texts = await page
    .locator('main time:not([data-local="title"], .countdown)')
    .evaluateAll((times) => times.map(({ textContent }) => textContent))
  const titles = await page
    .locator('main time[data-local="title"]')
    .evaluateAll((times) => times.map((time) => time.getAttribute('title') ?? ''))
  return [...texts, ...titles]
}

test.each([
  [true, 'GMT+5:30'],
  [false, 'UTC'],
])('all times and days of a page name one zone, with scripts: %s', async (script, zone) => {
  const { page, user } = await readyRelay({ script, timeZone: 'Asia/Kolkata' })
  const { session } = await user.active()
  const { session_id } = (await user.start({ connection_id: 'second' })).body.session
  await user.stop({ session_id, immediate: true })
  await api.sql`
    update users set plan_status = 'cancelled', plan_until = now() + interval '20 days' where id = ${user.userId}`
  const paths = ['/relays', '/history', `/history/${session_id}`, `/history/${session?.session_id}`, '/account']
  for (const path of [...paths, '/account/activity', '/account/security', '/status']) {
    await page.goto(`${url}${path}`)
    const times = await timesOf(page)
    expect([path, times.length > 0]).toEqual([path, true])
    const isNamed = (time: string) => time.endsWith(` ${zone}`) || time.endsWith(` (${zone})`)
    expect([path, times.filter((time) => !isNamed(time))]).toEqual([path, []])
  }
})

test('all days of the usage are in UTC, west of it too, since relay time is counted by these days', async () => {
  const { page, user } = await streamer({ timeZone: 'America/Los_Angeles' })
  await api.sql`
    update users set plan_status = 'active', period_start = '2026-11-01T00:00:00Z'::timestamptz,
      period_end = date_trunc('month', now(), 'UTC') + interval '1 month'
    where id = ${user.userId}`
  await page.goto(`${url}/usage`)
  const times = await timesOf(page)
  expect(times[0]).toMatch(/^1 \w+ 20\d\d \(UTC\)$/)
  expect(times.filter((time) => !time.endsWith(' (UTC)'))).toEqual([])
})

test('activity of two days of the visitor is not under one day of UTC', async () => {
  const { page, user } = await streamer({ timeZone: 'Asia/Kolkata' })
  for (const at of ['2026-11-20T18:29:59Z', '2026-11-20T18:30:01Z'])
    await api.sql`
      insert into audit_entries (at, initiator, action, user_id) values (${at}, 'user', 'email_changed', ${user.userId})`
  await page.goto(`${url}/account/activity?group=security`)
  expect(await page.locator('[data-action="email_changed"] time').allInnerTexts()).toEqual([
    '21 Nov 2026, 00:00:01 GMT+5:30',
    '20 Nov 2026, 23:59:59 GMT+5:30',
  ])
})

test('the relays page names the zone of its last update', async () => {
  const { page } = await streamer({ timeZone: 'Asia/Kolkata' })
  await page.route('**/api/v1/relay/**', (route) => route.abort())
  await expect
    .poll(() => page.locator('[data-freshness]').textContent(), { timeout: 20_000 })
    .toMatch(/^Last updated at \d\d:\d\d:\d\d GMT\+5:30\. Trying again…$/)
})
