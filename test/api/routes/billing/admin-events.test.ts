/** The operators' list of billing events, and how they replay and dismiss them. */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { maskEmail } from '../../../../domain/identity/masked-email.ts'
import { type Answer, type GivenUser, statusAndCode } from '../../../support/api.ts'
import {
  billingEvent,
  type EventsReply,
  type EventView,
  fetchEvents,
  findEvent,
  type SandboxSender,
  sandboxSender,
} from '../../../support/billing.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { readMetrics } from '../../../support/metrics.ts'
import { eventually, operator, type TestService } from '../../../support/relays.ts'

let service: TestService
let provider: SandboxSender
beforeAll(async () => {
  service = await startFakeRelayService()
  provider = sandboxSender(service.api)
})

const list = (query = '') => service.api.get<EventsReply>(`/admin/billing/events${query}`, { headers: operator })
const replay = (id: string): Promise<Answer<{ event: EventView }>> =>
  service.api.post<{ event: EventView }>(`/admin/billing/events/${id}/replay`, {}, { headers: operator })

/** Sends it and answers it as operators see it. */
const sent = async (event: Parameters<SandboxSender['send']>[0]): Promise<EventView> => {
  const id = randomUUID()
  expect((await provider.send(event, { id })).status).toBe(200)
  const seen = await findEvent(service.api, id)
  if (!seen) throw new Error('taken, but not to be seen')
  return seen
}

const until = (event: EventView, status: string) =>
  eventually(
    () => findEvent(service.api, event.event_key),
    (seen) => seen?.status === status,
  )

const auditOf = async (action: string, userId: string) =>
  (
    await service.api.get<{ entries: { action: string; actor: string; detail: object }[] }>(
      `/admin/audit?user_id=${userId}`,
      { headers: operator },
    )
  ).body.entries.filter((entry) => entry.action === action)

const planOf = async (user: GivenUser) =>
  (await service.api.get<{ plan_tier: string; plan_status: string }>('/billing/subscription', { bearer: user.bearer }))
    .body

describe('the list of events', () => {
  test('is for operators only', async () => {
    expect(statusAndCode(await service.api.get('/admin/billing/events'))).toEqual([401, 'invalid_operator'])
    const { bearer } = await service.api.given.user()
    expect(statusAndCode(await service.api.get('/admin/billing/events', { bearer }))).toEqual([401, 'invalid_operator'])
    expect(statusAndCode(await service.api.post(`/admin/billing/events/${randomUUID()}/replay`))).toEqual([
      401,
      'invalid_operator',
    ])
  })

  test('is paginated, newest first, and stable while new events arrive', async () => {
    const before = (await fetchEvents(service.api)).events.map((event) => event.event_key)
    const rows = await service.api.sql<{ key: string }[]>`
      insert into billing_events (provider, event_key, type, body, status, error)
      select 'stripe', 'one of many ' || n, 'x', '', 'parked', 'is unreadable' from generate_series(1, 110) n order by n
      returning event_key as key`
    const keys = rows.map(({ key }) => key).reverse()
    const pages = [await list()]
    for (let cursor = pages[0]?.body.next_cursor; cursor; cursor = pages.at(-1)?.body.next_cursor) {
      await sent('one that comes while somebody reads')
      pages.push(await list(`?cursor=${cursor}`))
    }
    expect(pages.map((page) => page.status)).toEqual(pages.map(() => 200))
    expect(pages.slice(0, 2).map((page) => page.body.events.length)).toEqual([50, 50])
    const seen = pages.flatMap((page) => page.body.events.map((event) => event.event_key))
    expect(seen).toEqual([...keys, ...before])
  })

  test.each(['unresolved', 'pending', 'applied', 'ignored', 'parked', 'dead', 'dismissed'])(
    'has only those that are %s when they are asked for',
    async (status) => {
      const { sql } = service.api
      const event = sql.json({ key: status })
      await sql`
      insert into billing_events (provider, event_key, type, action, event, body, status, next_attempt_at)
      values ('stripe', ${`one that is ${status}`}, 'x', 'refund', ${event}, '', ${status}, now() + interval '1 day')`
      const { events } = (await list(`?status=${status}`)).body
      expect(new Set(events.map((event) => event.status))).toEqual(new Set([status]))
      expect(events.some((event) => event.event_key === `one that is ${status}`)).toBe(true)
    },
  )

  test('can be filtered by account, with pagination', async () => {
    const { userId } = await service.api.given.user()
    const other = await service.api.given.user()
    const event = service.api.sql.json({ key: 'x' })
    for (const owner of [userId, other.userId])
      await service.api.sql`
        insert into billing_events (provider, event_key, type, action, event, body, status, user_id)
        select 'stripe', gen_random_uuid()::text, 'x', 'refund', ${event}, '',
          case when n % 10 = 0 then 'ignored' else 'applied' end, ${owner} from generate_series(1, 60) n`
    const first = (await list(`?user_id=${userId}`)).body
    const second = (await list(`?user_id=${userId}&cursor=${first.next_cursor}`)).body
    expect([first.events.length, second.events.length, second.next_cursor]).toEqual([50, 10, null])
    expect(new Set([...first.events, ...second.events].map((event) => event.user_id))).toEqual(new Set([userId]))
    const ignored = (await list(`?user_id=${userId}&status=ignored`)).body.events
    expect(ignored.map(({ status, user_id }) => [status, user_id])).toEqual(
      Array.from({ length: 6 }, () => ['ignored', userId]),
    )
    expect((await list(`?user_id=${randomUUID()}`)).body.events).toEqual([])
  })

  test.each([
    '?status=lost',
    '?status=',
    '?status=parked&status=dead',
    '?cursor=1',
    '?cursor=%00',
    '?cursor=',
    '?user_id=',
    '?user_id=7',
  ])('refuses %s', async (query) => {
    expect(statusAndCode(await list(query))).toEqual([400, 'invalid_request'])
  })
})

describe('a dismissal', () => {
  const dismiss = (id: string, body: object = {}): Promise<Answer<{ event: EventView }>> =>
    service.api.post<{ event: EventView }>(`/admin/billing/events/${id}/dismiss`, body, { headers: operator })

  /** An event of an account that there is not. */
  const stray = () => sent(billingEvent('subscription.activated', { user_id: randomUUID() }))

  const gauges = async () => {
    const metrics = await readMetrics(service.api)
    return ['parked', 'dead'].map((status) => metrics(`svc_billing_events{status="${status}"}`) ?? Number.NaN)
  }

  const dismissals = async () =>
    (
      await service.api.get<{ entries: { action: string; actor: string; detail: object }[] }>('/admin/audit', {
        headers: operator,
      })
    ).body.entries.filter(({ action }) => action === 'billing_event_dismissed')

  test.each([
    ['parked', [1, 0]],
    ['dead', [0, 1]],
  ] as const)('takes a %s event out of the gauges, and is an audit entry once', async (status, fewer) => {
    const event = await stray()
    await service.api.sql`update billing_events set status = ${status} where id = ${event.id}`
    const before = await gauges()
    const { body } = await dismiss(event.id, { reason: 'an account of the old shop' })
    expect(body.event).toEqual({ ...event, status: 'dismissed' })
    expect((await dismiss(event.id)).body.event).toEqual(body.event)
    expect(await gauges()).toEqual(before.map((count, index) => count - (fewer[index] ?? 0)))
    const detail = { event_id: event.id, status, reason: 'an account of the old shop' }
    expect((await dismissals()).filter((entry) => isDeepStrictEqual(entry.detail, detail))).toHaveLength(1)
    expect((await list('?status=dismissed')).body.events).toContainEqual(body.event)
  })

  test('remains when the account is created, until the event is replayed', async () => {
    const userId = randomUUID()
    const event = await sent(billingEvent('subscription.activated', { user_id: userId }))
    await dismiss(event.id)
    await service.api.sql`
      insert into users (id, email, stream_token_sealed, stream_token_hash)
      values (${userId}, ${`${userId}@example.com`}, 'sealed', sha256(gen_random_uuid()::text::bytea))`
    await service.api.sql`update jobs set due_at = now() where name = 'deliver_billing_events'`
    const later = await sent(billingEvent('payment.failed', { user_id: userId }))
    await until(later, 'applied')
    expect(await findEvent(service.api, event.event_key)).toMatchObject({ status: 'dismissed' })
    expect((await replay(event.id)).body.event).toMatchObject({ user_id: userId, status: 'pending' })
    await until(event, 'applied')
  })

  test.each(['pending', 'applied', 'ignored'])('of an event with status %s is refused', async (status) => {
    const event = await stray()
    await service.api.sql`update billing_events set status = ${status} where id = ${event.id}`
    expect(statusAndCode(await dismiss(event.id))).toEqual([409, 'invalid_transition'])
    expect(await findEvent(service.api, event.event_key)).toMatchObject({ status })
    await service.api.sql`update billing_events set status = 'parked' where id = ${event.id}`
  })

  test('of an unknown event is not found, and is for operators only', async () => {
    for (const id of [randomUUID(), '1', '%00']) expect(statusAndCode(await dismiss(id))).toEqual([404, 'not_found'])
    const { bearer } = await service.api.given.user()
    const path = `/admin/billing/events/${randomUUID()}/dismiss`
    expect(statusAndCode(await service.api.post(path, undefined, { bearer }))).toEqual([401, 'invalid_operator'])
  })
})

describe('a replay', () => {
  /** An event of the account that was kept by a version that understood it otherwise. */
  const asUnderstoodBefore = async (status: 'ignored' | 'parked' | 'dead', error: string | null) => {
    const user = await service.api.given.user()
    const event = await sent(billingEvent('subscription.activated', { subscription_id: `sub_${randomUUID()}` }))
    const bytes = JSON.stringify(billingEvent('subscription.activated', { user_id: user.userId }))
    await service.api.sql`
      update billing_events set status = ${status}, error = ${error}, action = null, event = null, user_ref = null,
        subscription_id = null, occurred_at = null, body = ${Buffer.from(bytes)}
      where id = ${event.id}`
    return { user, event }
  }

  test.each([
    ['that was parked as unreadable', 'parked', 'type: Invalid option'],
    ['that was nothing to us', 'ignored', null],
    ['that was given up', 'dead', 'the account does not exist'],
  ] as const)('reads an event again %s, and its account takes it', async (_, status, error) => {
    const { user, event } = await asUnderstoodBefore(status, error)
    const { status: answered, body } = await replay(event.id)
    expect(answered).toBe(200)
    expect(body.event).toEqual({
      ...event,
      action: 'activate',
      user_id: user.userId,
      masked_email: maskEmail(user.email),
      status: expect.stringMatching(/^(pending|applied)$/),
      occurred_at: expect.any(String),
      error: null,
    })
    await until(event, 'applied')
    expect(await planOf(user)).toMatchObject({ plan_tier: 'paid', plan_status: 'active' })
    expect(await auditOf('billing_event_replayed', user.userId)).toMatchObject([
      { actor: 'operator', detail: { event_id: event.id } },
    ])
  })

  test('of an unusable event leaves it parked with the problem', async () => {
    const event = await sent('no event')
    expect((await replay(event.id)).body.event).toEqual(event)
    expect(event).toMatchObject({ status: 'parked', error: 'body: not JSON in UTF-8' })
  })

  test('of an event without a known account leaves it parked', async () => {
    const event = await sent(billingEvent('subscription.activated', { user_id: randomUUID() }))
    expect((await replay(event.id)).body.event).toEqual(event)
  })

  test('of an applied event has no second effect, also if sent concurrently', async () => {
    const user = await service.api.given.user()
    const event = await sent(billingEvent('subscription.activated', { user_id: user.userId }))
    await until(event, 'applied')
    const { sql } = service.api
    const applied = () => sql`select applied_at, body, event from billing_events where id = ${event.id}`
    const before = await applied()
    const answers = await Promise.all(Array.from({ length: 12 }, () => replay(event.id)))
    expect(answers.map((answer) => [answer.status, answer.body.event.id])).toEqual(answers.map(() => [200, event.id]))
    await until(event, 'applied')
    expect(await applied()).toEqual(before)
    expect(await findEvent(service.api, event.event_key)).toEqual({ ...event, status: 'applied' })
    expect(await auditOf('plan_changed', user.userId)).toHaveLength(1)
    expect(await auditOf('billing_event_replayed', user.userId)).toHaveLength(12)
  })

  test('of an event that was parsed wrongly ends its effect', async () => {
    const user = await service.api.given.user()
    const event = await sent(billingEvent('subscription.activated', { user_id: user.userId }))
    await until(event, 'applied')
    expect(await planOf(user)).toMatchObject({ plan_tier: 'paid' })
    await service.api.sql`update billing_events set body = '{"type":"something else"}' where id = ${event.id}`
    expect((await replay(event.id)).body.event).toMatchObject({ status: 'parked', user_id: null })
    await eventually(
      () => planOf(user),
      (plan) => plan.plan_tier === 'free',
    )
  })

  test('of an older event does not undo later ones', async () => {
    const user = await service.api.given.user()
    const subscription_id = `sub_${randomUUID()}`
    const of = { user_id: user.userId, subscription_id }
    const older = await sent(billingEvent('subscription.activated', of, Date.now() - 2000))
    await until(older, 'applied')
    await until(await sent(billingEvent('subscription.downgraded', of, Date.now() - 1000)), 'applied')
    await replay(older.id)
    await until(older, 'applied')
    expect(await planOf(user)).toMatchObject({ plan_tier: 'free' })
  })

  test("of an operator's grant, which has no bytes, has no second effect", async () => {
    const user = await service.api.given.user()
    await service.api.post(`/admin/users/${user.userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
    const grant = (await list()).body.events.find((event) => event.user_id === user.userId)
    if (!grant) throw new Error('no event of the grant')
    expect((await replay(grant.id)).status).toBe(200)
    await until(grant, 'applied')
    expect(await auditOf('plan_changed', user.userId)).toHaveLength(1)
    expect(await planOf(user)).toMatchObject({ plan_tier: 'paid' })
  })

  test('of an event of another provider leaves it unchanged', async () => {
    const [row] = await service.api.sql<{ id: string }[]>`
      insert into billing_events (provider, event_key, type, body, status, error)
      values ('stripe', 'evt_1', 'customer.created', '{}', 'parked', 'why') returning id`
    expect((await replay(row?.id ?? '')).body.event).toMatchObject({
      provider: 'stripe',
      status: 'parked',
      error: 'why',
    })
  })

  test.each([randomUUID(), '1', '%00', 'x'.repeat(300)])('of %s is not found', async (id) => {
    expect(statusAndCode(await replay(id))).toEqual([404, 'not_found'])
  })
})
