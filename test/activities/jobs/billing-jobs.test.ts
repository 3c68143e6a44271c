import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { billingJobs } from '../../../activities/jobs/billing-jobs.ts'
import { connectTemporal } from '../../../platform/temporal.ts'
import { subscriptionWorkflowId } from '../../../workflows/messages.ts'
import { createSubscriptionWorkflows } from '../../../workflows/subscription-client.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { billingEvent, eventOf, type SandboxSender, sandboxSender } from '../../support/billing.ts'
import { freePort, operatorPassword } from '../../support/relays.ts'

let api: TestApi
let provider: SandboxSender
beforeAll(async () => {
  // Nobody works on this queue: what the jobs tell stays in the actors' histories, to be counted.
  api = await startApi({ SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`, SVC_OPERATOR_PASSWORD: operatorPassword })
  provider = sandboxSender(api)
})

const run = async (name: string, over: { subscriptions?: TestApi['services']['subscriptions'] } = {}) => {
  const { sql, log, subscriptions } = api.services
  await billingJobs({ sql, log, subscriptions, ...over })
    .find((job) => job.name === name)
    ?.run()
}
const deliver = () => run('deliver_billing_events')

/** An event that was taken this long ago, and whose signal, if any, was lost. */
async function takenAgo(seconds: number, data: Parameters<typeof billingEvent>[1]) {
  const id = randomUUID()
  expect((await provider.send(billingEvent('subscription.activated', data), { id })).status).toBe(200)
  await api.services.deliveries.settled()
  await api.sql`update billing_events set received_at = now() - make_interval(secs => ${seconds}) where event_key = ${id}`
  return id
}

/** How often the account's actor was told that there is news. */
async function timesTold(userId: string): Promise<number> {
  const handle = api.services.temporal.workflow.getHandle(subscriptionWorkflowId(userId))
  const { events } = await handle.fetchHistory()
  return events?.filter((event) => event.workflowExecutionSignaledEventAttributes?.signalName === 'wake').length ?? 0
}

const appears = (userId: string) => api.sql`
  insert into users (id, email, stream_token) values (${userId}, ${`${userId}@example.com`}, ${userId.slice(0, 8)})`

const day = 86_400

describe('delivering billing events', () => {
  test('tells an actor again what it has not taken for some seconds, and no other', async () => {
    const [waiting, fresh] = [await api.given.user(), await api.given.user()]
    await takenAgo(10, { user_id: waiting.userId })
    await takenAgo(0, { user_id: fresh.userId })
    expect(await timesTold(waiting.userId)).toBe(1)
    await deliver()
    expect([await timesTold(waiting.userId), await timesTold(fresh.userId)]).toEqual([2, 1])
  })

  test('hands a parked event on once its account is there', async () => {
    const userId = randomUUID()
    const id = await takenAgo(10, { user_id: userId.toUpperCase() })
    await deliver()
    expect(await eventOf(api, id)).toMatchObject({ status: 'parked', user_id: null })
    await appears(userId)
    await deliver()
    expect(await eventOf(api, id)).toMatchObject({ status: 'pending', user_id: userId, error: null })
    expect(await timesTold(userId)).toBe(1)
  })

  test('hands a parked event on once its subscription is told of', async () => {
    const { userId } = await api.given.user()
    const subscription_id = `sub_${randomUUID()}`
    const id = await takenAgo(10, { subscription_id })
    await takenAgo(0, { subscription_id, user_id: userId })
    await deliver()
    expect(await eventOf(api, id)).toMatchObject({ status: 'pending', user_id: userId, error: null })
  })

  test('gives an event up that was parked for 30 days, and not before; its account comes too late then', async () => {
    const userId = randomUUID()
    const [young, old] = [
      await takenAgo(30 * day - 60, { user_id: userId }),
      await takenAgo(30 * day + 60, { user_id: userId }),
    ]
    await deliver()
    expect(await eventOf(api, young)).toMatchObject({ status: 'parked' })
    expect(await eventOf(api, old)).toMatchObject({ status: 'dead', error: 'no such account' })
    expect(api.logged.filter((line) => line.includes('were given up'))).toHaveLength(1)
    await appears(userId)
    await deliver()
    expect(await eventOf(api, young)).toMatchObject({ status: 'pending' })
    expect(await eventOf(api, old)).toMatchObject({ status: 'dead', user_id: null })
  })

  test('goes on while Temporal is away', async () => {
    const { userId } = await api.given.user()
    const id = await takenAgo(10, { user_id: userId })
    const away = connectTemporal({ ...api.services.config.temporal, address: `127.0.0.1:${await freePort()}` })
    atEnd(away.close)
    const subscriptions = createSubscriptionWorkflows(away.client, { taskQueue: 'none', callMillisMax: 500 })
    await run('deliver_billing_events', { subscriptions })
    expect(await eventOf(api, id)).toMatchObject({ status: 'pending' })
    await deliver()
    expect(await timesTold(userId)).toBe(2)
  })
})

describe('waking subscriptions', () => {
  test('tells the actor of an account whose deadline is over, also one that is gone, and no other', async () => {
    const [late, due] = [await api.given.user(), await api.given.user()]
    await takenAgo(0, { user_id: due.userId })
    await api.sql`update users set entitlement_due_at = now() - interval '20 seconds' where id = ${late.userId}`
    await api.sql`update users set entitlement_due_at = now() - interval '2 seconds' where id = ${due.userId}`
    await run('wake_subscriptions')
    expect([await timesTold(late.userId), await timesTold(due.userId)]).toEqual([1, 1])
  })
})

describe('the metrics page', () => {
  test('tells how many events wait for what, how long, and whose actor is late', async () => {
    const apart = await startApi()
    const { sql } = apart
    const metrics = async () => {
      const text = await (await fetch(`${apart.url}/metrics`)).text()
      return (name: string) =>
        Number(
          text
            .split('\n')
            .find((line) => line.startsWith(`${name} `))
            ?.slice(name.length),
        )
    }
    const names = ['pending', 'parked', 'dead', 'unresolved'].map((status) => `svc_billing_events{status="${status}"}`)
    const ages = ['svc_billing_oldest_pending_seconds', 'svc_billing_oldest_unresolved_seconds']
    expect([...names, ...ages, 'svc_subscriptions_overdue'].map(await metrics())).toEqual([0, 0, 0, 0, 0, 0, 0])

    const { userId } = await apart.given.user()
    const event = sql.json({ key: 'x' })
    for (const [status, secondsAgo] of [
      ['pending', 90],
      ['pending', 10],
      ['parked', 4000],
      ['dead', 5000],
      ['unresolved', 700],
      ['applied', 6000],
    ] as const)
      await sql`
        insert into billing_events (provider, event_key, type, action, fact, body, status, user_id, received_at, next_attempt_at)
        values ('sandbox', gen_random_uuid()::text, 'x', 'refund', ${event}, '', ${status}, ${userId},
          now() - make_interval(secs => ${secondsAgo}), now())`
    await sql`update users set entitlement_due_at = now() - interval '70 seconds' where id = ${userId}`
    const after = await metrics()
    expect([...names, 'svc_subscriptions_overdue'].map(after)).toEqual([2, 1, 1, 1, 1])
    expect(ages.map((name) => Math.round(after(name) / 10))).toEqual([9, 70])
    await sql`
      update users set entitlement_due_at = now() - interval '50 seconds', inbox_changed_at = now() - interval '200 seconds'
      where id = ${userId}`
    const later = await metrics()
    expect(later('svc_subscriptions_overdue')).toBe(0)
    expect(Math.round(later('svc_billing_oldest_pending_seconds') / 10)).toBe(20)
  })
})
