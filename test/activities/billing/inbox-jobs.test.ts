/** The jobs that wake subscription workflows: events that were not applied, parked ones, and deadlines that passed. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { billingJobs } from '../../../activities/billing/inbox-jobs.ts'
import { listInboxEvents } from '../../../db/billing/events.ts'
import { entitlementVersion } from '../../../db/billing/subscriptions.ts'
import { first } from '../../../db/connection.ts'
import { writeEntitlement } from '../../../db/transactions/write-entitlement.ts'
import type { AccountEntitlement } from '../../../domain/billing/entitlement.ts'
import { connectTemporal } from '../../../platform/temporal.ts'
import { subscriptionWorkflowId } from '../../../workflows/messages.ts'
import { createSubscriptionWorkflows } from '../../../workflows/subscription-client.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { billingEvent, findEvent, type SandboxSender, sandboxSender } from '../../support/billing.ts'
import { findFreePort } from '../../support/ports.ts'
import { operatorPassword } from '../../support/relays.ts'

let api: TestApi
let provider: SandboxSender
beforeAll(async () => {
  // No worker polls this task queue: the jobs' signals stay in the workflows' histories, where they are counted.
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

/** Sends an event and backdates its acceptance. No workflow applies it. */
async function sendEvent(seconds: number, data: Parameters<typeof billingEvent>[1]) {
  const id = randomUUID()
  expect((await provider.send(billingEvent('subscription.activated', data), { id })).status).toBe(200)
  await api.services.deliveries.drain()
  await api.sql`update billing_events set received_at = now() - make_interval(secs => ${seconds}) where event_key = ${id}`
  return id
}

/** Signals in the history of the account's workflow. */
async function countWakes(userId: string): Promise<number> {
  const handle = api.services.temporal.workflow.getHandle(subscriptionWorkflowId(userId))
  const { events } = await handle.fetchHistory()
  return events?.filter((event) => event.workflowExecutionSignaledEventAttributes?.signalName === 'wake').length ?? 0
}

const createAccount = (userId: string) => api.sql`
  insert into users (id, email, stream_token_sealed, stream_token_hash)
  values (${userId}, ${`${userId}@example.com`}, 'sealed', sha256(gen_random_uuid()::text::bytea))`

const day = 86_400

describe('deliver_billing_events', () => {
  test('wakes the workflow of an account whose event was not applied for some seconds, and no other', async () => {
    const [waiting, fresh] = [await api.given.user(), await api.given.user()]
    await sendEvent(10, { user_id: waiting.userId })
    await sendEvent(0, { user_id: fresh.userId })
    expect(await countWakes(waiting.userId)).toBe(1)
    await deliver()
    expect([await countWakes(waiting.userId), await countWakes(fresh.userId)]).toEqual([2, 1])
  })

  test('moves a parked event to its account once that account exists', async () => {
    const userId = randomUUID()
    const id = await sendEvent(10, { user_id: userId.toUpperCase() })
    await deliver()
    expect(await findEvent(api, id)).toMatchObject({ status: 'parked', user_id: null })
    await createAccount(userId)
    await deliver()
    expect(await findEvent(api, id)).toMatchObject({ status: 'pending', user_id: userId, error: null })
    expect(await countWakes(userId)).toBe(1)
  })

  test('moves a parked event to the account that a later event of its subscription names', async () => {
    const { userId } = await api.given.user()
    const subscription_id = `sub_${randomUUID()}`
    const id = await sendEvent(10, { subscription_id })
    await sendEvent(0, { subscription_id, user_id: userId })
    await deliver()
    expect(await findEvent(api, id)).toMatchObject({ status: 'pending', user_id: userId, error: null })
  })

  test('an event that was parked for 30 days is dead, and stays so when its account is created later', async () => {
    const userId = randomUUID()
    const [young, old] = [
      await sendEvent(30 * day - 60, { user_id: userId }),
      await sendEvent(30 * day + 60, { user_id: userId }),
    ]
    await deliver()
    expect(await findEvent(api, young)).toMatchObject({ status: 'parked' })
    expect(await findEvent(api, old)).toMatchObject({ status: 'dead', error: 'the account does not exist' })
    expect(api.logged.filter((line) => line.includes('were dead-lettered'))).toHaveLength(1)
    await createAccount(userId)
    await deliver()
    expect(await findEvent(api, young)).toMatchObject({ status: 'pending' })
    expect(await findEvent(api, old)).toMatchObject({ status: 'dead', user_id: null })
  })

  test('wakes the account in the next run when Temporal was unavailable', async () => {
    const { userId } = await api.given.user()
    const id = await sendEvent(10, { user_id: userId })
    const away = connectTemporal({ ...api.services.config.temporal, address: `127.0.0.1:${await findFreePort()}` })
    atEnd(away.close)
    const subscriptions = createSubscriptionWorkflows(away.client, {
      taskQueue: 'none',
      callMillisMax: 500,
      findMaskedEmail: async () => null,
    })
    await run('deliver_billing_events', { subscriptions })
    expect(await findEvent(api, id)).toMatchObject({ status: 'pending' })
    await deliver()
    expect(await countWakes(userId)).toBe(2)
  })
})

describe('wake_subscriptions', () => {
  test('wakes the workflow of an account whose deadline passed, also one that no longer runs, and no other', async () => {
    const [late, due] = [await api.given.user(), await api.given.user()]
    await sendEvent(0, { user_id: due.userId })
    await api.sql`update users set entitlement_due_at = now() - interval '20 seconds' where id = ${late.userId}`
    await api.sql`update users set entitlement_due_at = now() - interval '2 seconds' where id = ${due.userId}`
    await run('wake_subscriptions')
    expect([await countWakes(late.userId), await countWakes(due.userId)]).toEqual([1, 1])
  })
})

describe('backoff of wakes', () => {
  interface StoredBackoff {
    readonly attempts: number
    readonly backoffSeconds: number | null
  }
  const backoffOf = async (userId: string) =>
    first(api.sql<StoredBackoff[]>`
      select wake_attempts as attempts, extract(epoch from next_wake_at - woken_at)::float8 as backoff_seconds
      from users where id = ${userId}`)
  const endBackoff = (userId: string) => api.sql`update users set next_wake_at = now() where id = ${userId}`

  /** An account whose workflow, which no worker runs, has an event to apply and has missed a deadline. */
  async function stuckAccount(): Promise<string> {
    const { userId } = await api.given.user()
    await sendEvent(3600, { user_id: userId })
    await api.sql`update users set entitlement_due_at = now() - interval '1 hour' where id = ${userId}`
    return userId
  }

  // Each run uses new jobs, like a worker that has just started, so no state is in memory.
  test.each(['deliver_billing_events', 'wake_subscriptions'])(
    '%s wakes a workflow that does not act less and less often, down to every ten minutes',
    async (job) => {
      const userId = await stuckAccount()
      const before = await countWakes(userId)
      const backoffs: (number | null | undefined)[] = []
      for (let wakes = 0; wakes < 10; wakes += 1) {
        await run(job)
        await run(job)
        backoffs.push((await backoffOf(userId))?.backoffSeconds)
        await endBackoff(userId)
      }
      expect(backoffs).toEqual([4, 8, 16, 32, 64, 128, 256, 512, 600, 600])
      expect((await countWakes(userId)) - before).toBe(10)
    },
  )

  test('a new event starts the backoff again', async () => {
    const userId = await stuckAccount()
    for (let wakes = 0; wakes < 3; wakes += 1) {
      await deliver()
      await endBackoff(userId)
    }
    await deliver()
    expect(await backoffOf(userId)).toEqual({ attempts: 4, backoffSeconds: 32 })
    await api.sql`update users set woken_at = woken_at - interval '20 seconds' where id = ${userId}`
    await sendEvent(10, { user_id: userId })
    await deliver()
    expect(await backoffOf(userId)).toEqual({ attempts: 1, backoffSeconds: 4 })
  })

  test('a workflow that writes its entitlement ends the backoff', async () => {
    const userId = await stuckAccount()
    await deliver()
    const entitlement: AccountEntitlement = {
      planTier: 'free',
      planStatus: 'none',
      addons: 0,
      periodStart: null,
      periodEnd: null,
      endsAt: null,
      graceEndsAt: null,
      changesAt: null,
      subscriptions: [],
    }
    const version = (await entitlementVersion(api.sql, userId)) ?? 0
    const eventIds = (await listInboxEvents(api.sql, userId, 0, 10)).map((event) => event.id)
    const at = Date.now()
    const request = { userId, version, eventIds, entitlement, at, addonNoticeSeconds: 1800, trialSeconds: 0 }
    expect(await writeEntitlement(api.sql, request)).toMatchObject({ type: 'written' })
    expect(await backoffOf(userId)).toEqual({ attempts: 0, backoffSeconds: null })
  })

  test('a failed wake is sent in the next run, and does not delay others', async () => {
    const [reachable, unreachable] = [await stuckAccount(), await stuckAccount()]
    const woken: string[] = []
    const wake = async (userId: string) => {
      woken.push(userId)
      if (userId === unreachable) throw new Error('unavailable')
    }
    const subscriptions = { ...api.services.subscriptions, wake }
    const wakesOf = (userId: string) => woken.filter((id) => id === userId).length
    await run('deliver_billing_events', { subscriptions })
    await run('deliver_billing_events', { subscriptions })
    expect([wakesOf(reachable), wakesOf(unreachable)]).toEqual([1, 2])
  })
})

describe('the metrics page', () => {
  test('shows the number and age of waiting events, and of overdue accounts', async () => {
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
        insert into billing_events (provider, event_key, type, action, event, body, status, user_id, received_at, next_attempt_at)
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
