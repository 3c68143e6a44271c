/** Accounts whose money and whose relays a test speaks for: webhooks as a provider sends them, relays on paper. */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { SessionView } from '../../api/routes/relay-session-view.ts'
import type { SandboxEventType } from '../../providers/billing/sandbox-events.ts'
import { subscriptionWorkflowId } from '../../workflows/messages.ts'
import type { TestApi } from './api.ts'
import { billingEvent, type EventData, sandboxSender } from './billing.ts'
import { eventually, type RelayUser, type TestService } from './relays.ts'

export const hour = 3_600_000
export const graceMillis = 48 * hour

/** Paper relays report once and then no more, which is not what these tests are about. */
export const patient = { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300', SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300' }

export interface Plan {
  readonly planTier: 'free' | 'paid'
  readonly planStatus: string
  readonly addons: number
  readonly planUntil: Date | null
  readonly paymentGraceEndsAt: Date | null
  readonly periodStart: Date | null
  readonly periodEnd: Date | null
  readonly surplusEndsAt: Date | null
  readonly entitlementDueAt: Date | null
}

export interface Subscriber extends RelayUser {
  /** Of the plan, unless an event names another. */
  readonly subscriptionId: string
  /** What the provider tells. Rejects unless it is accepted. @param at when it happened; now unless given. */
  told(type: SandboxEventType, data?: EventData, at?: number): Promise<void>
  plan(): Promise<Plan>
  /** The plan, once it is as wanted. */
  until(isWanted: (plan: Plan) => boolean, secondsMax?: number): Promise<Plan>
  /** A new relay that is on the air. */
  relay(): Promise<SessionView>
  /** Each plan that the account had, the first one first. */
  plansHad(): Promise<{ planTier: string; planStatus: string; addons: number }[]>
}

export const isFree = ({ planTier }: { readonly planTier: string }): boolean => planTier === 'free'
export const isPastDue = ({ planStatus }: { readonly planStatus: string }): boolean => planStatus === 'past_due'

/** Free at first, with nothing told yet. @param paper how the service's relays are on paper. */
export async function newSubscriber(
  service: TestService,
  paper: { instanceOf(sessionId: string): string },
): Promise<Subscriber> {
  const { api } = service
  const user = await service.user()
  await api.sql`update users set plan_tier = 'free', plan_status = 'none', addons = 0 where id = ${user.userId}`
  const subscriptionId = `sub_${randomUUID()}`
  const plan = () => planOf(api, user.userId)
  return {
    ...user,
    subscriptionId,
    told: async (type, data = {}, at = Date.now()) => {
      const event = billingEvent(type, { user_id: user.userId, subscription_id: subscriptionId, ...data }, at)
      expect((await sandboxSender(api).send(event)).status).toBe(200)
    },
    plan,
    until: (isWanted, secondsMax) => eventually(plan, isWanted, secondsMax),
    relay: () => relayOnAir(service, user, paper),
    plansHad: async () =>
      api.sql`
        select detail ->> 'plan_tier' as plan_tier, detail ->> 'plan_status' as plan_status, (detail ->> 'addons')::int as addons
        from audit_entries where user_id = ${user.userId} and action = 'plan_changed' order by id`,
  }
}

async function planOf({ sql }: TestApi, userId: string): Promise<Plan> {
  const [row] = await sql<Plan[]>`
    select plan_tier, plan_status, addons, plan_until, payment_grace_ends_at, period_start, period_end, surplus_ends_at,
      entitlement_due_at
    from users where id = ${userId}`
  if (!row) throw new Error('the account is gone')
  return row
}

async function relayOnAir(
  { api }: TestService,
  user: RelayUser,
  { instanceOf }: { instanceOf(sessionId: string): string },
): Promise<SessionView> {
  const { status, body } = await user.start({ connection_id: randomUUID() })
  expect(status).toBe(201)
  const { session_id } = body.session
  const find = async () => (await user.active()).sessions.find((one) => one.session_id === session_id)
  await eventually(find, (session) => session?.instance_id != null)
  const [secret = ''] = api.services.config.relayAuthSecrets
  const report = { session_id, instance_id: instanceOf(session_id) }
  await api.post('/relay/health', report, { headers: { 'X-Relay-Auth': secret } })
  return (await eventually(find, (session) => session?.state === 'active')) as SessionView
}

/** A subscriber with a paid plan, and the actor that knows it. */
export async function newPaidSubscriber(
  service: TestService,
  paper: { instanceOf(sessionId: string): string },
  { addons = 0, since = Date.now() - 60 * 24 * hour }: { addons?: number; since?: number } = {},
): Promise<Subscriber> {
  const subscriber = await newSubscriber(service, paper)
  await subscriber.told('subscription.activated', { invoice_id: 'inv_1' }, since)
  if (addons > 0)
    await subscriber.told('addon.updated', { subscription_id: addonsOf(subscriber), quantity: addons }, since)
  await subscriber.until((plan) => plan.planTier === 'paid' && plan.addons === addons)
  return subscriber
}

/** The subscription of the subscriber's add-ons. */
export const addonsOf = ({ subscriptionId }: Subscriber): string => `${subscriptionId}_addons`

/** The state of a session and how it came there: `[state, reason, actor of the last move]`. */
export async function fateOf(service: TestService, { session_id }: SessionView): Promise<(string | undefined)[]> {
  const { session, transitions } = await service.history(session_id)
  return [session.state, session.reason, transitions.at(-1)?.actor]
}

export const onAir = ['active', 'relay_ready', 'relay'] as const
export const cutOff = ['stopped', 'force_disconnected', 'system'] as const

/** Resolves once the relay was cut off by the service itself. */
export const untilCutOff = (service: TestService, session: SessionView, secondsMax?: number) =>
  eventually(
    () => fateOf(service, session),
    (fate) => fate.join() === cutOff.join(),
    secondsMax,
  )

export const actorOf = ({ api }: TestService, { userId }: { userId: string }) =>
  api.services.temporal.workflow.getHandle(subscriptionWorkflowId(userId))

/** Lets a background job have its turn now. */
export const hurry = async ({ api }: TestService, job: string): Promise<void> => {
  await api.sql`update jobs set due_at = now() where name = ${job}`
}
