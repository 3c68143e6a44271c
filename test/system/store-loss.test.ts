/**
 * Temporal loses all histories, and Postgres decides what goes on. The tests share one service, and run in this order.
 */
import { randomUUID } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { beforeAll, describe, expect, test } from 'vitest'
import { atEnd } from '../support/at-end.ts'
import { billingEvent, sandboxSender } from '../support/billing.ts'
import { type ControlPlane, type PaidUser, startControlPlane } from '../support/control-plane.ts'
import { untilWell } from '../support/programs.ts'
import { eventually, operator, type relayProcesses } from '../support/relays.ts'
import { hourMillis, paymentGraceMillis } from '../support/subscribers.ts'

const regions = [
  { region: 'local', display_name: 'Local', provider: 'local', default: true },
  { region: 'warm', display_name: 'Warm', provider: 'local', warm: 1 },
]

let plane: ControlPlane
type UserName = 'streaming' | 'pausing' | 'ending' | 'starting' | 'waiting'
let users: Record<UserName, PaidUser>
let sessions: { active: string; inGrace: string; ended: string; provisioning: string }
let graceEndsAt: string
let pastDue: { userId: string; subscriptionId: string; endsAt: string }
let relaysBefore: ReturnType<typeof relayProcesses>

beforeAll(async () => {
  plane = await startControlPlane({
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '60',
    SVC_RELAY_STOP_GRACE_SECONDS: '300',
    SVC_REGIONS: JSON.stringify(regions),
  })
  const [streaming, pausing, ending, starting, waiting] = await Promise.all([
    plane.paidUser(),
    plane.paidUser(),
    plane.paidUser(),
    plane.paidUser(),
    plane.paidUser(),
  ])
  users = { streaming, pausing, ending, starting, waiting }
  const start = async (user: PaidUser) => (await user.start()).body.session.session_id
  const [active, inGrace, ended] = await Promise.all([start(streaming), start(pausing), start(ending)])
  for (const id of [active, inGrace, ended]) await plane.untilState(id, 'active')
  graceEndsAt = (await pausing.stop(false)).body.session.grace_ends_at ?? ''
  pastDue = await failPayment()
  await eventually(
    () => plane.sql`select from instances where session_id is null and last_report_at is not null`,
    ({ count }) => count === 1,
  )
  // It stays in `provisioning` as long as no report of its relay arrives.
  await plane.reports.block()
  const provisioning = await start(starting)
  await eventually(
    () => plane.history(provisioning),
    ({ live }) => live?.state === 'provisioning' && live.instance_id !== null,
  )
  sessions = { active, inGrace, ended, provisioning }
  relaysBefore = plane.relays()
  expect(relaysBefore).toHaveLength(5)

  await plane.temporal.stop()
  plane.temporal.deleteStore()
  // Temporal's list may lack sessions of the last seconds, so they are not compared with it.
  await plane.sql`update relay_sessions set created_at = created_at - interval '1 minute'`
  await plane.temporal.start()
  await untilWell(plane.client.url)
})

/** Creates an account whose payment failed an hour ago, and waits for its payment grace period. */
async function failPayment(): Promise<typeof pastDue> {
  const { userId } = await plane.user()
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
  )

describe('after the loss of the store of Temporal alone', () => {
  test('a command for a live session restarts its workflow, which executes the command', async () => {
    expect((await users.ending.stop()).status).toBe(200)
    await plane.untilState(sessions.ended, 'stopped')
    await eventually(
      () => plane.relays(),
      (relays) => relays.every(({ sessionId }) => sessionId !== sessions.ended),
    )
  })

  test('an active session and one in grace get workflows again, with the same deadline', async () => {
    await plane.runJob('restart_workflows')
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

  test('a session that was provisioning gets its workflow again, and becomes active', async () => {
    expect((await restarted(sessions.provisioning)).session.state).toBe('provisioning')
    await plane.reports.open()
    await plane.untilState(sessions.provisioning, 'active')
    const relaysOf = (relays: typeof relaysBefore) =>
      relays.filter(({ sessionId }) => sessionId === sessions.provisioning)
    expect(relaysOf(plane.relays())).toEqual(relaysOf(relaysBefore))
    await users.starting.stop()
    await plane.untilState(sessions.provisioning, 'stopped')
  })

  test('an account in its payment grace period gets its workflow again, with the same deadline', async () => {
    const { entitlement, live } = await eventually(
      () => subscriptionOf(pastDue.userId),
      (reply) => reply.live !== null,
    )
    expect(entitlement).toMatchObject({ plan_status: 'past_due', grace_ends_at: pastDue.endsAt })
    expect(live).toMatchObject({ plan_status: 'past_due', wakes_at: pastDue.endsAt })
  })

  test('all of them can be found by their search attributes', async () => {
    const connection = await Connection.connect({ address: plane.temporal.address })
    atEnd(() => connection.close())
    const { workflow } = new Client({ connection })
    const count = async (query: string) => (await workflow.count(query)).count
    for (const query of [
      'RelayState = "active" AND Connection = "default" AND Region = "local"',
      'RelayState = "grace" AND Connection = "default" AND Region = "local"',
      'PlanStatus = "past_due" AND PlanTier = "paid"',
    ])
      await eventually(
        () => count(query),
        (found) => found === 1,
      )
  })

  test('no relay was ended, and none was created a second time', () => {
    const hasEnded = ({ sessionId = '' }) => [sessions.ended, sessions.provisioning].includes(sessionId)
    const pids = (relays: typeof relaysBefore) => relays.filter((relay) => !hasEnded(relay)).map(({ pid }) => pid)
    expect(pids(plane.relays()).toSorted()).toEqual(pids(relaysBefore).toSorted())
  })

  test('a start gets the warm relay that existed, and the region gets another one', async () => {
    const warm = relaysBefore.find(({ sessionId }) => sessionId === undefined)
    const { body } = await users.waiting.start({ region: 'warm' })
    const { session } = await plane.untilState(body.session.session_id, 'active')
    expect(session.instance_id).toBe(warm?.instanceId)
    await eventually(
      () => plane.relays(),
      (relays) => relays.some((relay) => relay.sessionId === undefined && relay.pid !== warm?.pid),
    )
    await users.waiting.stop()
    await plane.untilState(body.session.session_id, 'stopped')
  })

  test('stops end the sessions and their relays', async () => {
    for (const user of [users.streaming, users.pausing]) expect((await user.stop()).status).toBe(200)
    for (const id of [sessions.active, sessions.inGrace]) await plane.untilState(id, 'stopped')
    await eventually(
      () => plane.relays(),
      (relays) => relays.every(({ sessionId }) => sessionId !== sessions.active && sessionId !== sessions.inGrace),
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
