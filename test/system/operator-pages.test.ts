/** The pages of accounts, relays, billing events and instances in the operator console, in Chromium. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { billingEvent, sandboxSender } from '../support/billing.ts'
import { createAccountWithId } from '../support/operator-console.ts'
import { expectUsable, type Visitor, waitForNotice, waitForPage } from './browser.ts'
import { startDashboard } from './streamers.ts'

const { api, url, operator: newOperator, readyRelay, report } = await startDashboard()

async function act({ page }: Visitor, name: string, reason: string): Promise<void> {
  const form = page.locator(`[data-act$="/${name}"]`)
  await form.locator('summary').click()
  await form.locator('input[name="reason"]').fill(reason)
  await form.getByRole('button').click()
  await waitForNotice(page, name)
}

/** An event for an account that does not exist. */
async function parkedEvent(userId: string): Promise<string> {
  const key = randomUUID()
  await sandboxSender(api).send(billingEvent('subscription.activated', { user_id: userId }), { id: key })
  const [row] = await api.sql<{ id: string }[]>`select id from billing_events where event_key = ${key}`
  return row?.id ?? ''
}

/** An account with a streaming relay, a subscription, an event that failed, and the longest masked address. */
interface BusyAccount {
  readonly userId: string
  readonly sessionId: string
  readonly eventId: string
  readonly withdrawalId: string
}

async function busyAccount(): Promise<BusyAccount> {
  const { user, context } = await readyRelay()
  await context.close()
  await report(user, { publishing: true, bitrate_kbps: 5200, rtt_ms: 41.5, links: 3, bytes_total: 3_400_000_000 })
  await api.sql`update relay_health set recent_slot = recent_slot - 1`
  await report(user, { publishing: true, bitrate_kbps: 3000, links: 2, bytes_total: 3_500_000_000 })
  const { userId } = user
  const sessionId = (await user.active()).session?.session_id ?? ''
  await api.sql`
    insert into subscriptions (user_id, provider, subscription_id, kind, status, quantity)
    values (${userId}, 'stripe', ${`sub_${randomUUID()}`}, 'plan', 'active', 1)`
  const eventId = await parkedEvent(randomUUID())
  await api.sql`update billing_events set user_id = ${userId} where id = ${eventId}`
  const email = `streamer@mail.${'x'.repeat(24)}`
  await api.sql`update users set addons_without_plan = 1, email = ${email} where id = ${userId}`
  const [withdrawal] = await api.sql<{ id: string }[]>`
    insert into withdrawals (user_id, provider, subscription_id, kind, quantity, purchased_at, refund_error, refund_failed_at)
    values (${userId}, 'sandbox', ${`sub_${userId}`}, 'plan', 1, now(), 'stripe answered 402', now()) returning id`
  return { userId, sessionId, eventId, withdrawalId: withdrawal?.id ?? '' }
}

const account = await busyAccount()

test.each(['phone', 'desktop'] as const)(
  'an operator finds an account, grants a plan with a reason and sees it in the audit, on a %s',
  async (device) => {
    const { userId, email } = await api.given.user()
    const browser = await newOperator('/operator/users', { device })
    const { page } = browser
    await page.locator('input[name="email"]').fill(email)
    await page.keyboard.press('Enter')
    await page.locator(`[data-user="${userId}"]`).waitFor()
    await act(browser, 'grant', `a partner, on a ${device}`)
    expect(await page.locator('[data-access]').getAttribute('data-access')).toBe('ok')
    await page.goto(`${url}/operator/audit?user_id=${userId}`)
    expect(await page.locator('[data-action="plan_granted"]').innerText()).toContain(`a partner, on a ${device}`)
    expect(browser.faults).toEqual([])
  },
)

test('an operator replays a billing event that was dead-lettered', async () => {
  const userId = randomUUID()
  const eventId = await parkedEvent(userId)
  // A parked one would be applied by itself once the account exists.
  await api.sql`update billing_events set status = 'dead' where id = ${eventId}`
  await createAccountWithId(api, userId)
  const browser = await newOperator('/operator/billing?status=dead')
  await browser.page.locator(`[data-event="${eventId}"] th a`).click()
  await waitForPage(browser.page, 'operator-billing-event')
  await act(browser, 'replay', 'the account exists now')
  await expect
    .poll(async () => {
      await browser.page.reload()
      return browser.page.locator(`[data-event="${eventId}"]`).getAttribute('data-status')
    })
    .toBe('applied')
})

test('an operator disconnects a live relay, without scripts', async () => {
  const { user, context } = await readyRelay()
  await context.close()
  const sessionId = (await user.active()).session?.session_id ?? ''
  const browser = await newOperator(`/operator/sessions?state=active&user_id=${user.userId}`, { script: false })
  await browser.page.locator(`[data-session="${sessionId}"] th a`).click()
  await act(browser, 'disconnect', 'abuse')
  expect(await browser.page.locator('main [data-state]').getAttribute('data-state')).toBe('stopped')
  expect((await user.active()).session).toBeNull()
})

test.each([
  '/operator/users?email=nobody@example.com',
  `/operator/users/${account.userId}`,
  '/operator/sessions',
  `/operator/sessions/${account.sessionId}`,
  '/operator/billing',
  `/operator/billing/events/${account.eventId}`,
  '/operator/billing/withdrawals',
  `/operator/billing/withdrawals/${account.withdrawalId}`,
  '/operator/billing/accounts?billed=without_plan',
  '/operator/instances',
])('%s is accessible on phones and desktops, light and dark', async (path) => {
  const browser = await newOperator(path, { device: 'phone' })
  for (const summary of await browser.page.locator('main summary').all()) await summary.click()
  const [name = ''] = path.slice(1).split('?')
  await expectUsable(browser, name.replaceAll('/', '-').replace(/-[0-9a-f]{8}-.*/, '-one'))
})

test.each([
  [true, 'GMT+5:30'],
  [false, 'UTC'],
])('all times of a page name one zone, and transitions have seconds, with scripts: %s', async (script, zone) => {
  const path = `/operator/sessions/${account.sessionId}`
  const { page } = await newOperator(path, { script, timeZone: 'Asia/Kolkata' })
  const times = await page.locator('main time:is([data-local="minute"], [data-local="second"])').allInnerTexts()
  expect(times.length).toBeGreaterThan(2)
  expect(times.filter((time) => !time.endsWith(` ${zone}`))).toEqual([])
  for (const time of await page.locator('.timeline time').allInnerTexts()) expect(time).toMatch(/, \d\d:\d\d:\d\d /)
})
