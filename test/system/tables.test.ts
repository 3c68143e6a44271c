/** Every column of every table is reached by touch and by keys, on a phone, a tablet and a desktop. */
import { randomUUID } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { signIn, tabTo, visitor } from './browser.ts'
import { startDashboard } from './streamers.ts'

const { api, url, operator, readyRelay } = await startDashboard()

/** An account with something in every list of the console, with the longest values that occur. */
async function busyAccount() {
  const { user, context } = await readyRelay()
  await context.close()
  const { userId } = user
  const sessionId = (await user.active()).session?.session_id ?? ''
  await api.sql`
    insert into subscriptions (user_id, provider, subscription_id, kind, status, quantity)
    values (${userId}, 'stripe', ${`sub_${randomUUID()}`}, 'plan', 'active', 1)`
  await api.sql`
    insert into billing_events (provider, event_key, type, user_id, body, status, error)
    values ('stripe', ${randomUUID()}, 'customer.subscription.trial_will_end', ${userId}, '', 'parked',
            'The event names a price that the configuration does not list.')`
  await api.sql`
    insert into instances (instance_id, region, unowned_since, provider_id)
    values (${`i-${randomUUID()}`}, 'local', now(), ${`i-${randomUUID()}`})`
  await api.sql`
    insert into withdrawals (user_id, provider, subscription_id, kind, quantity, purchased_at, refund_error, refund_failed_at)
    values (${userId}, 'stripe', ${`sub_${randomUUID()}`}, 'addon', 2, now(), 'stripe answered 402 (balance_insufficient)', now())`
  await api.sql`update users set addons_without_plan = 1 where id = ${userId}`
  const [ended] = await api.sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${userId}, 'main-camera-of-the-backpack', 'local', 'user') returning id`
  await api.sql`
    update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${ended?.id ?? ''}`
  return { user, userId, sessionId }
}

const { user, userId, sessionId } = await busyAccount()

const widths = [390, 1024, 1280] as const
const consolePages = [
  '/operator',
  '/operator/sessions',
  `/operator/sessions/${sessionId}`,
  `/operator/users/${userId}`,
  '/operator/billing',
  '/operator/billing/withdrawals',
  '/operator/billing/accounts?billed=without_plan',
  '/operator/instances',
  '/operator/jobs',
  '/operator/audit',
] as const

test.each(widths)('an operator reaches every column of every table at %i pixels', async (width) => {
  const { page } = await operator('/operator', { device: 'phone' })
  await page.setViewportSize({ width, height: 844 })
  let tables = 0
  for (const path of consolePages) {
    await page.goto(url + path)
    tables += await expectColumnsReached(page)
  }
  expect(tables).toBeGreaterThan(10)
})

test.each(widths)('a user reaches every column of every table at %i pixels', async (width) => {
  const { page } = await visitor({ device: 'phone' })
  await page.goto(`${url}/login`)
  await signIn(page, user)
  await page.waitForURL(`${url}/relays`)
  await page.setViewportSize({ width, height: 844 })
  let tables = 0
  for (const path of ['/history', '/usage']) {
    await page.goto(url + path)
    tables += await expectColumnsReached(page)
  }
  expect(tables).toBeGreaterThan(1)
})

/** Swipes and presses that must be enough to see every column. */
const stepsMax = 40

/** @returns the number of tables on the page. */
async function expectColumnsReached(page: Page): Promise<number> {
  for (const summary of await page.locator('main summary:has(+ .table-scroll)').all()) await summary.click()
  const tables = await page.locator('main table:visible').all()
  for (const table of tables) {
    const region = table.locator('xpath=..')
    const name = await region.getAttribute('aria-label')
    const row = table.locator('tbody tr').first()
    const touched = await seenColumns(row, () => swipeLeft(page, row))
    expect(touched, `${page.url()}: ${name}, by touch`).toEqual(await allColumns(row))
    await expect.poll(() => scrollBack(region)).toBe(0)
    await page.evaluate('document.activeElement.blur()')
    await tabTo(page, `section[aria-label="${name}"]`)
    const reached = await seenColumns(row, () => page.keyboard.press('ArrowRight', { delay: 30 }))
    expect(reached, `${page.url()}: ${name}, by keys`).toEqual(await allColumns(row))
  }
  return tables.length
}

/** A swipe goes on for a moment after the finger has left. @returns where the table is two frames later. */
const scrollBack = (region: Locator): Promise<number> =>
  region.evaluate(async (element) => {
    const view = element.ownerDocument.defaultView
    element.scrollTo(0, 0)
    for (let frame = 0; frame < 2; frame += 1) await new Promise((done) => view?.requestAnimationFrame(done))
    return element.scrollLeft
  })

const allColumns = async (row: Locator) => Array.from({ length: await row.locator('th, td').count() }, (_, at) => at)

/** The cells of the row that are shown at some time while the table is scrolled step by step. */
async function seenColumns(row: Locator, scroll: () => Promise<void>): Promise<readonly number[]> {
  const cells = await row.locator('th, td').all()
  const seen = new Set<number>()
  for (let step = 0; step < stepsMax && seen.size < cells.length; step += 1) {
    if (step > 0) await scroll()
    for (const [at, cell] of cells.entries()) if (!seen.has(at) && (await isShown(cell))) seen.add(at)
  }
  return [...seen].sort((a, b) => a - b)
}

/** Whether a pointer hits the cell at both of its ends, once the page is scrolled up or down to it. */
const isShown = (cell: Locator): Promise<boolean> =>
  cell.evaluate((element) => {
    const page = element.ownerDocument
    const view = page.defaultView
    if (!view) return false
    view.scrollBy({ top: element.getBoundingClientRect().top - view.innerHeight / 2, behavior: 'instant' })
    const { left, right, top, bottom } = element.getBoundingClientRect()
    return [left + 2, right - 2].every((x) => element.contains(page.elementFromPoint(x, (top + bottom) / 2)))
  })

/** A finger's way to the left over the row, in small steps so that the page follows it. */
async function swipeLeft(page: Page, row: Locator): Promise<void> {
  const y = ((await row.boundingBox())?.y ?? 0) + 10
  const client = await page.context().newCDPSession(page)
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: { x: number; y: number }[]) =>
    client.send('Input.dispatchTouchEvent', { type, touchPoints })
  const from = (page.viewportSize()?.width ?? 0) - 40
  await touch('touchStart', [{ x: from, y }])
  for (let step = 1; step <= 8; step += 1) await touch('touchMove', [{ x: from - 20 * step, y }])
  await touch('touchEnd', [])
  await client.detach()
}
