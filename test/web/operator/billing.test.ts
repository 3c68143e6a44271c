/** The pages of billing events and of accounts with unused billing in the operator console. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { billingEvent, sandboxSender } from '../../support/billing.ts'
import { createAccountWithId, markup, signedInOperator } from '../../support/operator-console.ts'
import { operatorPassword } from '../../support/relays.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({ api: { SVC_OPERATOR_PASSWORD: operatorPassword } })
const browser = await signedInOperator(site)

interface NewEvent {
  readonly provider?: string
  readonly status?: string
  readonly userId?: string | null
  readonly text?: string
}

async function writeEvent({ provider = 'stripe', status = 'parked', userId = null, text = 'x' }: NewEvent) {
  const [row] = await api.sql<{ id: string }[]>`
    insert into billing_events (provider, event_key, type, subscription_id, user_ref, user_id, body, status, error)
    values (${provider}, ${text + randomUUID()}, ${text}, ${text}, ${text}, ${userId}, '', ${status}, ${text})
    returning id`
  return row?.id ?? ''
}

test('events are listed by status, provider and account', async () => {
  const { userId } = await api.given.user()
  const parked = await writeEvent({ userId })
  const dead = await writeEvent({ userId, status: 'dead', provider: 'lemonsqueezy' })
  const idsOf = async (query: string) =>
    (await browser.open(`/operator/billing?user_id=${userId}${query}`)).data('event')
  expect(await idsOf('')).toEqual([dead, parked])
  expect(await idsOf('&status=parked')).toEqual([parked])
  expect(await idsOf('&provider=lemonsqueezy')).toEqual([dead])
  expect(await idsOf('&status=applied')).toEqual([])
  const refused = await browser.open('/operator/billing?status=lost')
  expect([refused.status, refused.problem]).toEqual([400, 'invalid_request'])
})

test('the list has pages', async () => {
  const { userId } = await api.given.user()
  for (let count = 0; count < 51; count += 1) await writeEvent({ userId })
  const first = await browser.open(`/operator/billing?user_id=${userId}`)
  const next = first.links.find((link) => link.includes('cursor=')) ?? ''
  const second = await browser.open(next.replaceAll('&amp;', '&'))
  expect([first.data('event').length, second.data('event').length]).toEqual([50, 1])
})

test('an event of an account that did not exist is replayed with a reason', async () => {
  const [missing, key] = [randomUUID(), randomUUID()]
  const event = billingEvent('subscription.activated', { user_id: missing })
  expect((await sandboxSender(api).send(event, { id: key })).status).toBe(200)
  const [row] = await api.sql<{ id: string }[]>`select id from billing_events where event_key = ${key}`
  const path = `/operator/billing/events/${row?.id}`
  const page = await browser.open(path)
  expect([page.name, page.data('status')]).toEqual(['operator-billing-event', ['parked']])
  expect(page.text).toContain(missing)
  expect(page.text).toContain('"action": "activate"')
  await createAccountWithId(api, missing)
  const refused = await browser.submit(page, `${path}/replay`)
  expect([refused.status, refused.problem, refused.data('status')]).toEqual([400, 'reason_required', ['parked']])
  const replayed = await browser.submit(page, `${path}/replay`, { reason: 'the account exists now' })
  expect(replayed.notice).toBe('replay')
  expect(['pending', 'applied']).toContain(replayed.data('status')[0])
  expect(replayed.links).toContain(`/operator/users/${missing}`)
  const [entry] = await api.sql`select detail from audit_entries where action = 'billing_event_replayed'`
  expect(entry?.detail).toMatchObject({ event_id: row?.id, reason: 'the account exists now' })
})

test('a parked event is dismissed with a reason, once', async () => {
  const id = await writeEvent({})
  const path = `/operator/billing/events/${id}`
  const page = await browser.open(path)
  const dismissed = await browser.submit(page, `${path}/dismiss`, { reason: 'a test of the provider' })
  expect([dismissed.notice, dismissed.data('status')]).toEqual(['dismiss', ['dismissed']])
  expect([dismissed.hasForm(`${path}/dismiss`), dismissed.hasForm(`${path}/replay`)]).toEqual([false, true])
})

test('a dismissal that came too late is refused with its code', async () => {
  const id = await writeEvent({})
  const path = `/operator/billing/events/${id}`
  const page = await browser.open(path)
  await api.sql`update billing_events set status = 'ignored' where id = ${id}`
  const refused = await browser.submit(page, `${path}/dismiss`, { reason: 'late' })
  expect([refused.status, refused.problem, refused.data('status')]).toEqual([409, 'invalid_transition', ['ignored']])
})

test('accounts that are billed for what they cannot use are listed', async () => {
  const [unused, twice] = [await api.given.user(), await api.given.user()]
  await api.sql`update users set addons_without_plan = 2 where id = ${unused.userId}`
  await api.sql`update users set billed_plans = 2 where id = ${twice.userId}`
  const idsOf = async (billed: string) =>
    (await browser.open(`/operator/billing/accounts?billed=${billed}`)).data('account')
  expect(await idsOf('without_plan')).toEqual([unused.userId])
  expect(await idsOf('twice')).toEqual([twice.userId])
})

test('texts of providers are shown as text, and unknown events have no page', async () => {
  const id = await writeEvent({ text: markup })
  for (const path of ['/operator/billing?status=parked', `/operator/billing/events/${id}`]) {
    const page = await browser.open(path)
    expect(page.text).toContain(markup)
    expect(page.html).not.toContain('<img')
  }
  expect((await browser.open(`/operator/billing/events/${randomUUID()}`)).status).toBe(404)
})
