/** The pages of accounts in the operator console. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { markup, startOperatorConsole } from '../../support/operator-console.ts'
import { operator } from '../../support/relays.ts'
import { newCustomer } from '../../support/sandbox-customers.ts'

const { service, site, browser } = await startOperatorConsole()
const { api } = service

const auditOf = async (userId: string, action: string) =>
  (
    await api.get<{ entries: { action: string; detail: object }[] }>(
      `/admin/audit?user_id=${userId}&action=${action}`,
      { headers: operator },
    )
  ).body.entries

test('an account is found by its address in any case and by its id', async () => {
  const { userId, email } = await api.given.user()
  const search = await browser.open('/operator/users')
  expect(search.name).toBe('operator-users')
  for (const value of [email.toUpperCase(), ` ${email} `, userId, userId.toUpperCase()]) {
    const found = await browser.submit(search, '/operator/users', { email: value })
    expect([found.name, found.data('user')]).toEqual(['operator-user', [userId]])
  }
})

test('the search opens the page of a session, a billing event and an instance by its id', async () => {
  const { userId } = await api.given.user()
  const [session] = await api.sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
    values (${userId}, 'default', 'local', 'user', 1) returning id`
  const [event] = await api.sql<{ id: string }[]>`
    insert into billing_events (provider, event_key, type, user_id, body, status, error)
    values ('stripe', ${randomUUID()}, 'a type', ${userId}, '', 'parked', 'an error') returning id`
  const instanceId = `i-${randomUUID()}`
  await api.sql`insert into instances (instance_id, region, unowned_since) values (${instanceId}, 'local', now())`
  const search = await browser.open('/operator/users')
  const pathOf = async (id: string) => (await browser.submit(search, '/operator/users', { email: id })).path
  expect(await pathOf(session?.id ?? '')).toBe(`/operator/sessions/${session?.id}`)
  expect(await pathOf(event?.id ?? '')).toBe(`/operator/billing/events/${event?.id}`)
  expect(await pathOf(instanceId)).toBe(`/operator/instances?show=all&instance_id=${instanceId}`)
  for (const unknown of [randomUUID(), 'i-unknown'])
    expect((await browser.submit(search, '/operator/users', { email: unknown })).data('found')).toEqual(['none'])
})

test('the search opens the account of a customer and of a subscription at the billing provider', async () => {
  const { userId } = await api.given.user()
  const [customerId, subscriptionId] = [`cus_${randomUUID()}`, `sub_${randomUUID()}`]
  await api.sql`
    insert into subscriptions (user_id, provider, subscription_id, kind, status, quantity)
    values (${userId}, 'stripe', ${subscriptionId}, 'plan', 'active', 1)`
  await api.sql`
    insert into billing_customers (provider, subscription_id, customer_id)
    values ('stripe', ${subscriptionId}, ${customerId})`
  const search = await browser.open('/operator/users')
  for (const id of [customerId, subscriptionId])
    expect((await browser.submit(search, '/operator/users', { email: id })).path).toBe(`/operator/users/${userId}`)
})

test('an unknown page of the console keeps its navigation, and shows it to operators only', async () => {
  for (const path of ['/operator/nowhere', `/operator/users/${randomUUID()}`, '/operator/users/not-an-id']) {
    const page = await browser.open(path)
    expect([page.status, page.name]).toEqual([404, 'error-not_found'])
    expect(page.links).toContain('/operator/audit')
    expect(page.hasForm('/operator/sign-out')).toBe(true)
  }
  expect((await site.browser().open('/operator/nowhere')).links).not.toContain('/operator/audit')
})

test('an address without an account finds none, and an unknown id has no page', async () => {
  const search = await browser.open('/operator/users?email=nobody@example.com')
  expect([search.status, search.data('found')]).toEqual([200, ['none']])
  for (const id of [randomUUID(), 'not-an-id']) expect((await browser.open(`/operator/users/${id}`)).status).toBe(404)
})

test('an account is shown with its plan, its subscriptions, its relays and its billing events', async () => {
  const customer = await newCustomer(api)
  const { userId } = customer
  const subscriptionId = await customer.buy({ plan: 'paid' })
  await expect.poll(async () => (await customer.fetchSubscription()).plan_tier).toBe('paid')
  await api.sql`insert into user_oauth_accounts (user_id, provider, provider_user_id) values (${userId}, 'twitch', 'secret-id')`
  const page = await browser.open(`/operator/users/${userId}`)
  expect(page.data('access')).toEqual(['ok'])
  expect(page.data('subscription')).toEqual([subscriptionId])
  expect(page.data('event')).toHaveLength(1)
  expect(page.links).toContain(`/operator/billing/events/${page.data('event')[0]}`)
  expect(page.text).toContain('twitch')
  expect(page.html).not.toContain('secret-id')
  expect(page.links.filter((link) => link.includes(`workflows/subscription%2F${userId}`))).toHaveLength(1)
})

test('a grant with a reason gives the plan and is audited, and so is its withdrawal', async () => {
  const { userId } = await api.given.user()
  const path = `/operator/users/${userId}`
  const page = await browser.open(path)
  expect(page.data('access')).toEqual(['plan_required'])
  const form = { reason: 'a partner', addons: '2', until: '2099-12-31' }
  const granted = await browser.submit(page, `${path}/grant`, form)
  expect([granted.notice, granted.data('access')]).toEqual(['grant', ['ok']])
  const detail = { plan_tier: 'paid', addons: 2, until: '2099-12-31T23:59:59Z', reason: 'a partner' }
  expect((await auditOf(userId, 'plan_granted'))[0]?.detail).toEqual(detail)
  expect(granted.data('action')).toContain('plan_granted')
  const withdrawn = await browser.submit(granted, `${path}/withdraw`, { reason: 'no longer a partner' })
  expect([withdrawn.notice, withdrawn.data('access')]).toEqual(['withdraw', ['plan_required']])
  expect((await auditOf(userId, 'plan_granted'))[0]?.detail).toMatchObject({ reason: 'no longer a partner' })
})

test.each(['grant', 'withdraw', 'relay-access', 'disable'])('without a reason %s changes nothing', async (act) => {
  const { userId } = await api.given.user()
  const path = `/operator/users/${userId}`
  for (const reason of ['', '  ']) {
    const refused = await browser.submit(await browser.open(path), `${path}/${act}`, { reason })
    expect([refused.status, refused.name, refused.problem]).toEqual([400, 'operator-user', 'reason_required'])
  }
  const entries = await api.sql`select from audit_entries where user_id = ${userId} and initiator = 'operator'`
  expect(entries).toEqual([])
})

test('a value that the API refuses is reported with its code, and changes nothing', async () => {
  const { userId } = await api.given.user()
  const path = `/operator/users/${userId}`
  const form = { reason: 'a test', until: 'tomorrow' }
  const refused = await browser.submit(await browser.open(path), `${path}/grant`, form)
  expect([refused.status, refused.problem, refused.data('access')]).toEqual([400, 'invalid_request', ['plan_required']])
  expect(refused.text).toContain('(invalid_request)')
})

test('relays and accounts are disabled and enabled again with a reason', async () => {
  const user = await service.user()
  const path = `/operator/users/${user.userId}`
  const act = async (action: string, reason: string) =>
    browser.submit(await browser.open(path), `${path}/${action}`, { reason })
  expect((await act('relay-access', 'abuse')).data('access')).toEqual(['operator_disabled'])
  expect((await act('relay-access', 'resolved')).data('access')).toEqual(['ok'])
  const disabled = await act('disable', 'fraud')
  expect([disabled.data('disabled'), disabled.hasForm(`${path}/disable`)]).toEqual([['true'], false])
  expect((await api.post('/auth/login', user)).status).toBe(403)
  expect((await act('enable', 'a mistake')).data('disabled')).toEqual(['false'])
  expect((await auditOf(user.userId, 'account_enabled'))[0]?.detail).toEqual({ reason: 'a mistake' })
})

test('texts of users, plugins and providers are shown as text', async () => {
  const user = await service.user()
  const { userId } = user
  await api.given.signIn(user, markup)
  await api.sql`update users set email = ${`"${markup}"@example.com`} where id = ${userId}`
  await api.sql`
    insert into subscriptions (user_id, provider, subscription_id, kind, status, quantity)
    values (${userId}, 'stripe', ${markup}, 'plan', 'active', 1)`
  await api.sql`
    insert into billing_events (provider, event_key, type, user_id, body, status, error)
    values ('stripe', ${markup}, ${markup}, ${userId}, '', 'parked', ${markup})`
  await api.sql`
    insert into audit_entries (initiator, action, user_id, client, client_kind, detail)
    values ('operator', 'plan_granted', ${userId}, ${markup}, 'plugin', ${api.sql.json({ reason: markup })})`
  const page = await browser.open(`/operator/users/${userId}`)
  expect(page.status).toBe(200)
  expect(page.text.split(markup).length).toBeGreaterThan(6)
  expect(page.html).not.toContain('<img')
  const search = await browser.open(`/operator/users?email=${encodeURIComponent(markup)}`)
  expect(search.html).not.toContain('<img')
})
