import { randomUUID } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { beforeAll, describe, expect, test } from 'vitest'
import { signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { billingEvent, sandboxSender } from '../support/billing.ts'
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts'
import { eventually, operator, type relayProcesses } from '../support/relays.ts'
import { hourMillis, paymentGraceMillis } from '../support/subscribers.ts'

/** Longer than the interval of `restart_workflows`, the lag of Temporal's list and the time until the server answers. */
const restartSecondsMax = 60

const regions = [
  { region: 'local', display_name: 'Local', provider: 'local', default: true },
  { region: 'warm', display_name: 'Warm', provider: 'local', warm: 1 },
]

let plane: ControlPlane
let users: Record<'streaming' | 'pausing' | 'waiting', Awaited<ReturnType<ControlPlane['paidUser']>>>
let sessions: { active: string; inGrace: string }
let graceEndsAt: string
let pastDue: { userId: string; subscriptionId: string; endsAt: string }
let relaysBefore: ReturnType<typeof relayProcesses>

beforeAll(async () => {
  plane = await startControlPlane({ SVC_RELAY_STOP_GRACE_SECONDS: '300', SVC_REGIONS: JSON.stringify(regions) })
  users = { streaming: await plane.paidUser(), pausing: await plane.paidUser(), waiting: await plane.paidUser() }
  const active = (await users.streaming.start()).body.session.session_id
  const inGrace = (await users.pausing.start()).body.session.session_id
  for (const id of [active, inGrace]) await plane.untilState(id, 'active')
  graceEndsAt = (await users.pausing.stop(false)).body.session.grace_ends_at ?? ''
  sessions = { active, inGrace }
  pastDue = await failPayment()
  relaysBefore = await eventually(
    () => plane.relays(),
    (relays) => relays.length === 3,
  )

  await plane.temporal.stop()
  plane.temporal.deleteStore()
  await plane.temporal.start()
})

/** Creates an account whose payment failed an hour ago, and waits for its payment grace period. */
async function failPayment(): Promise<typeof pastDue> {
  const { userId } = await signUp(plane.client)
  const subscriptionId = `sub_${randomUUID()}`
  const failedAt = Date.now() - hourMillis
  const subscription = { user_id: userId, subscription_id: subscriptionId }
  const { send } = sandboxSender(plane.client, plane.webhookSecret)
  await send(billingEvent('subscription.activated', { ...subscription, invoice_id: 'inv_1' }, failedAt - hourMillis))
  await send(billingEvent('payment.failed', { ...subscription, invoice_id: 'inv_2' }, failedAt))
  const endsAt = new Date(failedAt + paymentGraceMillis).toISOString()
  await eventually(
    () => subscriptionOf(userId),
    ({ live }) => live?.wakes_at === endsAt,
  )
  return { userId, subscriptionId, endsAt }
}

interface SubscriptionReply {
  readonly entitlement: { readonly plan_status: string; readonly grace_ends_at: string | null }
  readonly live: { readonly wakes_at: string | null; readonly plan_status: string } | null
}

const subscriptionOf = async (userId: string): Promise<SubscriptionReply> =>
  (await plane.client.get<SubscriptionReply>(`/admin/users/${userId}/subscription`, { headers: operator })).body

/** The session with the snapshot of its workflow, once it has one. */
const restarted = (sessionId: string) =>
  eventually(
    () => plane.history(sessionId),
    ({ live }) => live != null,
    restartSecondsMax,
  )

describe('after the loss of the store of Temporal alone', () => {
  test('an active session and one in grace get workflows again, with the same deadline', async () => {
    const [active, inGrace] = await Promise.all([restarted(sessions.active), restarted(sessions.inGrace)])
    expect(active).toMatchObject({ session: { state: 'active' }, live: { state: 'active' } })
    expect(inGrace).toMatchObject({
      session: { state: 'grace', grace_ends_at: graceEndsAt },
      live: { state: 'grace' },
    })
    // The workflow computes its timer from the time that Postgres says is left.
    const { deadline_at: deadlineAt } = inGrace.live as unknown as { readonly deadline_at: string }
    expect(Math.abs(Date.parse(deadlineAt) - Date.parse(graceEndsAt))).toBeLessThan(2000)
  })

  test('an account in its payment grace period gets its workflow again, with the same deadline', async () => {
    const { entitlement, live } = await eventually(
      () => subscriptionOf(pastDue.userId),
      (reply) => reply.live !== null,
      restartSecondsMax,
    )
    expect(entitlement).toMatchObject({ plan_status: 'past_due', grace_ends_at: pastDue.endsAt })
    expect(live).toMatchObject({ plan_status: 'past_due', wakes_at: pastDue.endsAt })
  })

  test('all of them can be found by their search attributes', async () => {
    const connection = await Connection.connect({ address: plane.temporal.address })
    atEnd(() => connection.close())
    const { workflow } = new Client({ connection })
    const count = async (query: string) => (await workflow.count(query)).count
    for (const query of ['RelayState = "active"', 'RelayState = "grace"'])
      expect(await eventually(() => count(`${query} AND Connection = "default" AND Region = "local"`), Boolean)).toBe(1)
    expect(await eventually(() => count('PlanStatus = "past_due" AND PlanTier = "paid"'), Boolean)).toBe(1)
  })

  test('no relay was ended, and none was created a second time', () => {
    const pids = (relays: typeof relaysBefore) => relays.map(({ pid }) => pid).toSorted()
    expect(pids(plane.relays())).toEqual(pids(relaysBefore))
  })

  test('a start gets the warm relay that existed, and the region gets another one', async () => {
    const warm = relaysBefore.find(({ sessionId }) => sessionId === undefined)
    const { body } = await users.waiting.start({ region: 'warm' })
    const { session } = await plane.untilState(body.session.session_id, 'active')
    expect(session.instance_id).toBe(warm?.instanceId)
    await eventually(
      () => plane.relays(),
      (relays) => relays.length === 4,
    )
    await users.waiting.stop()
    await plane.untilState(body.session.session_id, 'stopped')
  })

  test('stops end the sessions and their relays', async () => {
    for (const user of [users.streaming, users.pausing]) expect((await user.stop()).status).toBe(200)
    for (const id of Object.values(sessions)) await plane.untilState(id, 'stopped')
    await eventually(
      () => plane.relays(),
      (relays) => relays.every(({ sessionId }) => sessionId === undefined),
    )
  })

  test('a payment ends the payment grace period', async () => {
    const { userId, subscriptionId } = pastDue
    const paid = { user_id: userId, subscription_id: subscriptionId, invoice_id: 'inv_2' }
    await sandboxSender(plane.client, plane.webhookSecret).send(billingEvent('payment.recovered', paid))
    const { entitlement } = await eventually(
      () => subscriptionOf(userId),
      (reply) => reply.entitlement.plan_status === 'active',
    )
    expect(entitlement.grace_ends_at).toBeNull()
  })
})
