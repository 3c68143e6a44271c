/** Accounts with sandbox subscriptions, whose webhooks the test sends, and with relays that exist only as rows. */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import type { SandboxEventType } from '../../providers/billing/sandbox-events.ts'
import { subscriptionWorkflowId } from '../../workflows/messages.ts'
import type { TestApi } from './api.ts'
import { billingEvent, type EventData, sandboxSender } from './billing.ts'
import type { FakeRelayService } from './fake-relays.ts'
import { eventually, type RelayUser, type TestService } from './relays.ts'
import { untilAtRest } from './workflows.ts'

export const hourMillis = 3_600_000
export const paymentGraceMillis = 48 * hourMillis

/** The relays of these tests report once: with these timeouts they stay active. */
export const longRelayTimeouts = { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300', SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300' }

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
  /** The plan's subscription. */
  readonly subscriptionId: string
  /**
   * Sends a webhook about the plan's subscription by default. Rejects unless it is accepted.
   * @param at now by default.
   */
  sendEvent(type: SandboxEventType, data?: EventData, at?: number): Promise<void>
  fetchPlan(): Promise<Plan>
  /** Resolves with the plan once it matches the condition. */
  waitForPlan(isWanted: (plan: Plan) => boolean): Promise<Plan>
  /** Resolves with the session of a new relay once it is active. */
  startRelay(): Promise<SessionView>
  /** All plans of the account, oldest first. */
  planHistory(): Promise<{ planTier: string; planStatus: string; addons: number }[]>
}

export const isFree = ({ planTier }: { readonly planTier: string }): boolean => planTier === 'free'
export const isPastDue = ({ planStatus }: { readonly planStatus: string }): boolean => planStatus === 'past_due'

/** Creates an account on the free tier. */
export async function newSubscriber(service: FakeRelayService): Promise<Subscriber> {
  const { api } = service
  const user = await service.user()
  await api.sql`update users set plan_tier = 'free', plan_status = 'none', addons = 0 where id = ${user.userId}`
  const subscriptionId = `sub_${randomUUID()}`
  const fetchPlan = () => findPlan(api, user.userId)
  return {
    ...user,
    subscriptionId,
    sendEvent: async (type, data = {}, at = Date.now()) => {
      const event = billingEvent(type, { user_id: user.userId, subscription_id: subscriptionId, ...data }, at)
      expect((await sandboxSender(api).send(event)).status).toBe(200)
    },
    fetchPlan,
    waitForPlan: (isWanted) => eventually(fetchPlan, isWanted),
    startRelay: () => service.startActiveRelay(user, { connection_id: randomUUID() }),
    planHistory: async () =>
      api.sql`
        select detail ->> 'plan_tier' as plan_tier, detail ->> 'plan_status' as plan_status, (detail ->> 'addons')::int as addons
        from audit_entries where user_id = ${user.userId} and action = 'plan_changed' order by id`,
  }
}

async function findPlan({ sql }: TestApi, userId: string): Promise<Plan> {
  const [row] = await sql<Plan[]>`
    select plan_tier, plan_status, addons, plan_until, payment_grace_ends_at, period_start, period_end, surplus_ends_at,
      entitlement_due_at
    from users where id = ${userId}`
  if (!row) throw new Error('the account does not exist')
  return row
}

/** Creates a subscriber on the paid tier. */
export async function newPaidSubscriber(
  service: FakeRelayService,
  { addons = 0, since = Date.now() - 60 * 24 * hourMillis }: { addons?: number; since?: number } = {},
): Promise<Subscriber> {
  const subscriber = await newSubscriber(service)
  await subscriber.sendEvent('subscription.activated', { invoice_id: 'inv_1' }, since)
  if (addons > 0)
    await subscriber.sendEvent(
      'addon.updated',
      { subscription_id: addonSubscriptionId(subscriber), quantity: addons },
      since,
    )
  await subscriber.waitForPlan((plan) => plan.planTier === 'paid' && plan.addons === addons)
  return subscriber
}

/** The subscription of the subscriber's add-ons. */
export const addonSubscriptionId = ({ subscriptionId }: Subscriber): string => `${subscriptionId}_addons`

/** `[state, reason, initiator of the last transition]` of a session. */
export async function lastTransition(
  service: FakeRelayService,
  { session_id }: SessionView,
): Promise<(string | undefined)[]> {
  const { session, transitions } = await service.history(session_id)
  return [session.state, session.reason, transitions.at(-1)?.initiator]
}

export const activeByRelay = ['active', 'relay_ready', 'relay'] as const
export const disconnectedBySystem = ['stopped', 'force_disconnected', 'system'] as const

/** Resolves once the subscription workflow has disconnected the relay. */
export const waitForDisconnect = (service: FakeRelayService, session: SessionView) =>
  eventually(
    () => lastTransition(service, session),
    (transition) => transition.join() === disconnectedBySystem.join(),
  )

/** When the relay was ordered to end; 0 if it was not. */
export async function findDisconnectTime({ api }: TestService, { session_id }: SessionView): Promise<number> {
  const [row] = await api.sql<{ at: Date | null }[]>`
    select min(at) as at from relay_transitions where session_id = ${session_id} and reason = 'force_disconnected'`
  return row?.at?.getTime() ?? 0
}

export const subscriptionHandle = ({ api }: TestService, { userId }: { userId: string }) =>
  api.services.temporal.workflow.getHandle(subscriptionWorkflowId(userId))

/**
 * Lets time pass for an account, whose workflow is not notified: all times of its billing events move into the past.
 */
export async function dateEventsBack(
  { sql }: TestApi,
  { userId }: { readonly userId: string },
  millis: number,
): Promise<void> {
  await sql`
    update billing_events set
      received_at = received_at - make_interval(secs => ${millis / 1000}),
      event = event || jsonb_build_object(
        'at', (event ->> 'at')::numeric - ${millis}::numeric,
        'periodStart', (event ->> 'periodStart')::numeric - ${millis}::numeric,
        'periodEnd', (event ->> 'periodEnd')::numeric - ${millis}::numeric)
    where user_id = ${userId}`
}

/** Lets time pass for an account: all times of its billing events move into the past, and its workflow reads them. */
export async function passTime(api: TestApi, user: { readonly userId: string }, millis: number): Promise<void> {
  await dateEventsBack(api, user, millis)
  await api.services.subscriptions.wake(user.userId)
}

/** Resolves when the account's workflow has applied all events. */
export const waitForAppliedEvents = async ({ api }: TestService, { userId }: { userId: string }): Promise<void> => {
  await eventually(
    () => api.sql`select from billing_events where user_id = ${userId} and status = 'pending'`,
    (pending) => pending.length === 0,
  )
}

/** Resolves when the account's workflow has handled all signals. */
export const waitForRest = (service: TestService, user: { userId: string }) =>
  untilAtRest(subscriptionHandle(service, user))

/** Makes a background job due now. */
export const triggerJob = async ({ api }: TestService, job: string): Promise<void> => {
  await api.sql`update jobs set due_at = now() where name = ${job}`
}
