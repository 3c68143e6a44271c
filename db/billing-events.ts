/**
 * The inbox of everything that providers and operators say about money. An event is kept before it is answered, and kept for
 * good: the subscription actor makes its state of nothing else. Moves through `status`:
 * unresolved (the provider has to be asked first) → pending (its actor is to take it) → applied · ignored (nothing to us) ·
 * parked (without an account, or unreadable) → dead. An operator may dismiss parked and dead ones (dismissed-events.ts).
 */
import { randomUUID } from 'node:crypto'
import type { Fragment } from 'postgres'
import type { BillingEvent, BillingEventAction, BillingSource } from '../domain/billing-event.ts'
import type { ReceivedBillingEvent } from '../platform/received-billing-event.ts'
import {
  assignOwner,
  findClaimedSubscriptions,
  findNamedAccount,
  lockAccounts,
  lockSubscriptions,
  type SubscriptionRef,
} from './billing-owners.ts'
import { type Database, first, type Sql } from './connection.ts'

export type { ReceivedBillingEvent } from '../platform/received-billing-event.ts'

export type BillingEventStatus = 'unresolved' | 'pending' | 'applied' | 'ignored' | 'parked' | 'dead' | 'dismissed'

/** How long an event may wait for its account to appear before it counts as dead. */
const parkedDaysMax = 30

export interface RecordedEvent {
  readonly id: string
  readonly status: BillingEventStatus
  readonly userId: string | null
  /** Accounts whose inbox it changed: its own, and one that has lost the subscription to it. */
  readonly accounts: readonly string[]
}

/**
 * Keeps the event unless its key is known, which answers nothing. It holds the account against its actor's next write, so
 * that of a deadline and an event each sees the other, or comes after it.
 */
export async function recordEvent(sql: Database, event: ReceivedBillingEvent): Promise<RecordedEvent | undefined> {
  // Repetitions come in numbers, and need neither a transaction nor a lock.
  if (await isRecorded(sql, event)) return undefined
  return sql.begin(async (tx) => recordEventIn(tx, event)) as Promise<RecordedEvent | undefined>
}

/** The same within a transaction of the caller's. */
export async function recordEventIn(tx: Sql, event: ReceivedBillingEvent): Promise<RecordedEvent | undefined> {
  const subscription = subscriptionRefFrom(event)
  const subscriptions = subscription ? [subscription] : []
  await lockSubscriptions(tx, subscriptions)
  // A repetition that came at the same time: the locks of the accounts are for others.
  if (subscription && (await isRecorded(tx, event))) return undefined
  await lockAccounts(tx, subscriptions, [event.userRef])
  const namedId = subscription ? null : await findNamedAccount(tx, event.userRef)
  const kept = await insertEvent(tx, event, namedId)
  if (!kept) return undefined
  if (!subscription) return { ...kept, accounts: kept.status === 'pending' && kept.userId ? [kept.userId] : [] }
  const accounts = await assignOwner(tx, subscription)
  const [placed = kept] = await tx<Omit<RecordedEvent, 'accounts'>[]>`
    select id, status, user_id from billing_events where id = ${kept.id}`
  return { ...placed, accounts }
}

async function insertEvent(
  tx: Sql,
  received: ReceivedBillingEvent,
  userId: string | null,
): Promise<Omit<RecordedEvent, 'accounts'> | undefined> {
  const { provider, key, type, userRef, userRefSource, event, unresolved, body } = received
  const { status, error } = decideStatus(received, userId)
  return first(
    await tx<Omit<RecordedEvent, 'accounts'>[]>`
      insert into billing_events
        (provider, event_key, type, action, user_ref, user_ref_source, subscription_id, user_id, event, body, status, error,
          occurred_at, settled_at, next_attempt_at)
      values (${provider}, ${key}, ${type}, ${(event ?? unresolved)?.action ?? null}, ${userRef},
        ${userRefSource ?? 'subscription'}, ${(event ?? unresolved)?.subscriptionId ?? null}, ${userId},
        ${event && tx.json({ ...event })}, ${body}, ${status}, ${error}, ${event && new Date(event.at)},
        ${status === 'ignored' ? tx`clock_timestamp()` : null}, ${unresolved ? firstAttemptAt(tx) : null})
      on conflict (provider, event_key) do nothing
      returning id, status, user_id`,
  )
}

/** The process that keeps an unresolved event makes the first attempt itself, and has this long for it. */
export const firstAttemptAt = (sql: Sql) => sql`clock_timestamp() + interval '45 seconds'`

const isRecorded = async (sql: Sql, { provider, key }: ReceivedBillingEvent): Promise<boolean> =>
  (await sql`select from billing_events where provider = ${provider} and event_key = ${key}`).length > 0

/** The subscription whose owner the event goes to. Operators' grants all have the same name, and go to the account they name. */
export const subscriptionRefFrom = ({
  provider,
  event,
  unresolved,
}: ReceivedBillingEvent): SubscriptionRef | undefined => {
  const subscriptionId = event?.subscriptionId ?? unresolved?.subscriptionId
  return provider === 'operator' || subscriptionId == null ? undefined : { provider, subscriptionId }
}

export interface Grant {
  readonly userId: string
  readonly planTier: 'free' | 'paid'
  readonly addons: number
  /** When it ends; null for never. */
  readonly until: Date | null
}

/**
 * Keeps an operator's word on a complimentary plan, dated by the database's clock and after any word before it: the last of
 * two counts, whichever process took them, and within whatever millisecond. The caller holds the account. Answers its id.
 */
export async function recordGrant(tx: Sql, { userId, planTier, addons, until }: Grant): Promise<string> {
  const action = planTier === 'paid' ? 'grant' : 'withdraw'
  const [clock] = await tx<{ at: number }[]>`
    select greatest(floor(extract(epoch from clock_timestamp()) * 1000), max((event ->> 'at')::numeric) + 1)::float8 as at
    from billing_events where user_id = ${userId} and provider = 'operator'`
  const key = `${action}:${randomUUID()}`
  const bare = { provider: 'operator', subscriptionId: 'grant', kind: 'plan', invoiceId: null, amount: null } as const
  const event: BillingEvent = {
    ...bare,
    key,
    action,
    at: clock?.at ?? 0,
    quantity: addons,
    periodStart: null,
    periodEnd: until?.getTime() ?? null,
  }
  const received = { provider: 'operator', key, type: action, userRef: userId, event, problem: null } as const
  const kept = await recordEventIn(tx, { ...received, body: Buffer.alloc(0) })
  if (!kept) throw new Error('a random key was taken')
  return kept.id
}

/** Where an event goes by what is known of it. @param userId the account that it goes to, as far as that is known. */
export function decideStatus(
  { event, problem, userRef, unresolved }: ReceivedBillingEvent,
  userId: string | null,
): { status: BillingEventStatus; error: string | null } {
  if (problem !== null) return { status: 'parked', error: problem }
  if (unresolved) return { status: 'unresolved', error: null }
  if (event === null) return { status: 'ignored', error: null }
  if (userId !== null) return { status: 'pending', error: null }
  return { status: 'parked', error: userRef === null ? 'nobody is known to have this subscription' : 'no such account' }
}

/** Subscriptions that one round gives an owner at most. */
const assignedMax = 500

/**
 * Moves parked events into the inbox of their account where it exists by now, and gives those up that waited too long. Answers
 * the number of subscriptions whose events moved, and of events that were given up.
 */
export async function assignParkedEvents(sql: Database): Promise<{ found: number; buried: number }> {
  let found = 0
  for (const subscription of await findClaimedSubscriptions(sql, assignedMax)) {
    const changed = await sql.begin(async (tx) => {
      await lockSubscriptions(tx, [subscription])
      await lockAccounts(tx, [subscription], [])
      return assignOwner(tx, subscription)
    })
    if (changed.length > 0) found += 1
  }
  const buried = await sql`
    update billing_events set status = 'dead'
    where status = 'parked' and received_at < now() - make_interval(days => ${parkedDaysMax})`
  return { found, buried: buried.count }
}

export interface InboxEvent {
  readonly id: string
  readonly seq: number
  readonly isApplied: boolean
  readonly event: BillingEvent
}

/** What an account's actor goes by, in the order of acceptance, one page. */
export const listInboxEvents = async (
  sql: Sql,
  userId: string,
  afterSeq: number,
  limit: number,
): Promise<InboxEvent[]> =>
  sql<InboxEvent[]>`
    select id, seq::float8 as seq, status = 'applied' as is_applied, event from billing_events
    where user_id = ${userId} and seq > ${afterSeq} and status in ('pending', 'applied')
    order by seq limit ${limit}`

/**
 * Whether the account has events that its actor has neither taken nor is taking now: also unresolved payments, which hold
 * back the end of a plan.
 */
export const hasUnappliedEvents = async (sql: Sql, userId: string, taken: readonly string[]): Promise<boolean> =>
  (
    await sql`
      select from billing_events where user_id = ${userId} and status = 'pending' and id <> all(${taken}::uuid[])
      union all
      select from billing_events
      where user_id = ${userId} and status = 'unresolved' and action = 'payment_recovery' and id <> all(${taken}::uuid[])
      limit 1`
  ).length > 0

export const markApplied = async (sql: Sql, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await sql`
    update billing_events set status = 'applied', error = null, applied_at = coalesce(applied_at, clock_timestamp()),
      settled_at = clock_timestamp()
    where id = any(${ids}::uuid[]) and status = 'pending'`
}

export const findEventStatus = async (sql: Sql, id: string): Promise<BillingEventStatus | undefined> =>
  first(await sql<{ status: BillingEventStatus }[]>`select status from billing_events where id = ${id}`)?.status

export interface BillingEventRow {
  id: string
  eventKey: string
  provider: BillingSource
  type: string
  action: BillingEventAction | null
  userId: string | null
  status: BillingEventStatus
  receivedAt: Date
  occurredAt: Date | null
  error: string | null
}

export const eventColumns = (sql: Sql) =>
  sql`id, event_key, provider, type, action, user_id, status, received_at, occurred_at, error`

interface EventFilter {
  readonly status?: BillingEventStatus | undefined
  readonly userId?: string | undefined
  /** The last event of the page before, by its id. */
  readonly before?: string | undefined
}

/** Events for operators, newest first, one page. */
export const listEvents = async (
  sql: Sql,
  { status, userId, before }: EventFilter,
  limit: number,
): Promise<BillingEventRow[]> =>
  sql<BillingEventRow[]>`
    select ${eventColumns(sql)} from billing_events
    where true ${status ? sql`and status = ${status}` : sql``} ${userId ? sql`and user_id = ${userId}` : sql``}
      ${before ? sql`and seq < (select seq from billing_events where id = ${before})` : sql``}
    order by seq desc limit ${limit}`

interface InboxFigures {
  readonly status: BillingEventStatus
  readonly events: number
  /** Of the oldest among them, in seconds; 0 when there are none. */
  readonly oldestSeconds: number
}

/**
 * How many events there are of each status that may need attention, each counted by an index of its own. The age of pending
 * ones includes that of inboxes that changed by other means.
 */
export const readInboxFigures = async (sql: Sql): Promise<InboxFigures[]> => {
  const figuresOf = (status: Fragment) => sql`
    select ${status} as status, count(*)::int as events,
      coalesce(extract(epoch from now() - min(received_at)), 0)::float8 as oldest_seconds
    from billing_events where status = ${status}`
  return sql<InboxFigures[]>`
    select status, events, greatest(oldest_seconds, (
      select extract(epoch from now() - min(inbox_changed_at)) from users where inbox_changed_at is not null))::float8 as oldest_seconds from (${figuresOf(sql`'pending'`)}) pending
    union all ${figuresOf(sql`'parked'`)} union all ${figuresOf(sql`'dead'`)}
    union all ${figuresOf(sql`'unresolved'`)}`
}
