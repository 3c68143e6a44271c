/**
 * The inbox of all billing events of providers and operators. An event is stored before its webhook is answered and
 * kept permanently: the subscription workflow derives the entitlement from the inbox alone. The statuses are described
 * in `domain/billing/event.ts`.
 */
import { randomUUID } from 'node:crypto'
import type { Fragment } from 'postgres'
import type { BillingEvent, BillingEventAction, BillingEventStatus, BillingSource } from '../../domain/billing/event.ts'
import type { PlanTier } from '../../domain/billing/plans.ts'
import type { ReceivedBillingEvent } from '../../domain/billing/received-event.ts'
import { first, firstValue, hasRow, type Sql } from '../connection.ts'
import { emailColumn, maskEmails, type WithEmail, type WithMaskedEmail } from '../masked-emails.ts'
import { assignOwner, findNamedAccount, lockAccounts, lockSubscriptions, type SubscriptionRef } from './owners.ts'

/** After this time a parked event is dead-lettered. */
const parkedDaysMax = 30

export interface RecordedEvent {
  readonly id: string
  readonly status: BillingEventStatus
  readonly userId: string | null
  /** Accounts whose inbox changed: the event's account, and the previous owner of its subscription. */
  readonly accounts: readonly string[]
}

/** The part of `recordEvent` (db/transactions/record-billing-event.ts) within its transaction. */
export async function recordEventIn(tx: Sql, event: ReceivedBillingEvent): Promise<RecordedEvent | undefined> {
  const subscription = subscriptionRefFrom(event)
  const subscriptions = subscription ? [subscription] : []
  await lockSubscriptions(tx, subscriptions)
  // A concurrent repetition may have been stored in the meantime; it needs no lock of an account.
  if (subscription && (await isRecorded(tx, event))) return undefined
  await lockAccounts(tx, subscriptions, [event.userRef])
  const namedId = subscription ? null : await findNamedAccount(tx, event.userRef)
  const inserted = await insertEvent(tx, event, namedId)
  if (!inserted) return undefined
  if (!subscription) {
    const { status, userId } = inserted
    return { ...inserted, accounts: status === 'pending' && userId ? [userId] : [] }
  }
  const accounts = await assignOwner(tx, subscription)
  const [assigned = inserted] = await tx<Omit<RecordedEvent, 'accounts'>[]>`
    select id, status, user_id from billing_events where id = ${inserted.id}`
  return { ...assigned, accounts }
}

async function insertEvent(
  tx: Sql,
  received: ReceivedBillingEvent,
  userId: string | null,
): Promise<Omit<RecordedEvent, 'accounts'> | undefined> {
  const { provider, key, type, userRef, userRefSource, event, unresolved, body } = received
  const { status, error } = decideStatus(received, userId)
  return await first(tx<Omit<RecordedEvent, 'accounts'>[]>`
    insert into billing_events
      (provider, event_key, type, action, user_ref, user_ref_source, subscription_id, user_id, event, body, status, error,
        occurred_at, settled_at, next_attempt_at)
    values (${provider}, ${key}, ${type}, ${(event ?? unresolved)?.action ?? null}, ${userRef},
      ${userRefSource ?? 'subscription'}, ${(event ?? unresolved)?.subscriptionId ?? null}, ${userId},
      ${event && tx.json({ ...event })}, ${body}, ${status}, ${error}, ${event && new Date(event.at)},
      ${status === 'ignored' ? tx`clock_timestamp()` : null}, ${unresolved ? firstAttemptAt(tx) : null})
    on conflict (provider, event_key) do nothing
    returning id, status, user_id`)
}

/** The process that stores an unresolved event makes the first attempt. A job makes the next one after this time. */
export const firstAttemptAt = (sql: Sql) => sql`clock_timestamp() + interval '45 seconds'`

export const isRecorded = async (sql: Sql, { provider, key }: ReceivedBillingEvent): Promise<boolean> =>
  hasRow(sql`select from billing_events where provider = ${provider} and event_key = ${key}`)

/**
 * The subscription whose owner gets the event. Undefined for an operator's event, which goes to the account that it
 * names.
 */
export const subscriptionRefFrom = ({
  provider,
  event,
  unresolved,
}: ReceivedBillingEvent): SubscriptionRef | undefined => {
  const subscriptionId = event?.subscriptionId ?? unresolved?.subscriptionId
  return provider === 'operator' || subscriptionId == null ? undefined : { provider, subscriptionId }
}

interface Grant {
  readonly userId: string
  readonly planTier: PlanTier
  readonly addons: number
  /** Null without an end. */
  readonly until: Date | null
}

/**
 * Stores an operator's grant or withdrawal, dated by the database's clock and later than all earlier ones of the
 * account: the last one applies. The caller has locked the account. Returns the event's id.
 */
export async function recordGrant(tx: Sql, { userId, planTier, addons, until }: Grant): Promise<string> {
  const action = planTier === 'paid' ? 'grant' : 'withdraw'
  const [clock] = await tx<{ at: number }[]>`
    select greatest(floor(extract(epoch from clock_timestamp()) * 1000), max((event ->> 'at')::numeric) + 1)::float8 as at
    from billing_events where user_id = ${userId} and provider = 'operator'`
  const key = `${action}:${randomUUID()}`
  const common = { provider: 'operator', subscriptionId: 'grant', kind: 'plan', invoiceId: null, amount: null } as const
  const event: BillingEvent = {
    ...common,
    key,
    action,
    at: clock?.at ?? 0,
    quantity: addons,
    periodStart: null,
    periodEnd: until?.getTime() ?? null,
  }
  const received = { provider: 'operator', key, type: action, userRef: userId, event, problem: null } as const
  const recorded = await recordEventIn(tx, { ...received, body: Buffer.alloc(0) })
  if (!recorded) throw new Error('a random event key exists already')
  return recorded.id
}

/** The status of a new or replaced event. @param userId its account, if known. */
export function decideStatus(
  { event, problem, userRef, unresolved }: ReceivedBillingEvent,
  userId: string | null,
): { status: BillingEventStatus; error: string | null } {
  if (problem !== null) return { status: 'parked', error: problem }
  if (unresolved) return { status: 'unresolved', error: null }
  if (event === null) return { status: 'ignored', error: null }
  if (userId !== null) return { status: 'pending', error: null }
  return {
    status: 'parked',
    error: userRef === null ? 'no account is known for this subscription' : 'the account does not exist',
  }
}

/** Dead-letters the events that were parked for too long. @returns their number. */
export const deadLetterEvents = async (sql: Sql): Promise<number> =>
  (
    await sql`
      update billing_events set status = 'dead'
      where status = 'parked' and received_at < now() - make_interval(days => ${parkedDaysMax})`
  ).count

export interface InboxEvent {
  readonly id: string
  readonly seq: number
  readonly isApplied: boolean
  readonly event: BillingEvent
}

/** One page of the events that an account's workflow applies, in the order of acceptance. */
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
 * Whether the account has pending events, or unresolved payments, which hold back the end of a plan.
 * @param exceptIds events that the caller has read.
 */
export const hasUnappliedEvents = async (sql: Sql, userId: string, exceptIds: readonly string[]): Promise<boolean> =>
  hasRow(sql`
    select from billing_events where user_id = ${userId} and status = 'pending' and id <> all(${exceptIds}::uuid[])
    union all
    select from billing_events
    where user_id = ${userId} and status = 'unresolved' and action = 'payment_recovery' and id <> all(${exceptIds}::uuid[])
    limit 1`)

export const markApplied = async (sql: Sql, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await sql`
    update billing_events set status = 'applied', error = null, applied_at = coalesce(applied_at, clock_timestamp()),
      settled_at = clock_timestamp()
    where id = any(${ids}::uuid[]) and status = 'pending'`
}

export const findEventStatus = async (sql: Sql, id: string): Promise<BillingEventStatus | undefined> =>
  firstValue(sql<{ status: BillingEventStatus }[]>`select status from billing_events where id = ${id}`)

export interface BillingEventRow extends WithMaskedEmail {
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

/** The columns of {@link BillingEventRow} before {@link maskEmails}. */
const eventColumns = (sql: Sql) => sql`
  id, event_key, provider, type, action, user_id, ${emailColumn(sql, sql`billing_events.user_id`)}, status, received_at,
  occurred_at, error`

interface EventRead {
  /** Columns beyond those of {@link BillingEventRow}, after a comma. */
  readonly furtherColumns?: Fragment
  readonly lock?: Fragment
}

/** Undefined for an unknown id. */
export const findEvent = async <Row extends BillingEventRow = BillingEventRow>(
  sql: Sql,
  id: string,
  { furtherColumns = sql``, lock = sql`` }: EventRead = {},
): Promise<Row | undefined> => {
  const rows = await sql<WithEmail<Row>[]>`
    select ${eventColumns(sql)}${furtherColumns} from billing_events where id = ${id} ${lock}`
  return maskEmails<Row>(rows)[0]
}

interface EventFilter {
  readonly status?: BillingEventStatus | undefined
  readonly provider?: BillingSource | undefined
  readonly userId?: string | undefined
  /** The id of the last event of the previous page. */
  readonly before?: string | undefined
}

/** One page of events for operators, newest first. */
export const listEvents = async (
  sql: Sql,
  { status, provider, userId, before }: EventFilter,
  limit: number,
): Promise<BillingEventRow[]> =>
  maskEmails<BillingEventRow>(
    await sql<WithEmail<BillingEventRow>[]>`
      select ${eventColumns(sql)} from billing_events
      where true ${status ? sql`and status = ${status}` : sql``} ${userId ? sql`and user_id = ${userId}` : sql``}
        ${provider ? sql`and provider = ${provider}` : sql``}
        ${before ? sql`and seq < (select seq from billing_events where id = ${before})` : sql``}
      order by seq desc limit ${limit}`,
  )

interface InboxFigures {
  readonly status: BillingEventStatus
  readonly events: number
  /** The age of the oldest event; 0 without events. */
  readonly oldestSeconds: number
}

/**
 * The number of events for each status that may need attention, each read from its own index. The age of pending events
 * includes the time since an inbox changed in other ways.
 */
export const readInboxFigures = async (sql: Sql): Promise<InboxFigures[]> => {
  const selectFigures = (status: Fragment) => sql`
    select ${status} as status, count(*)::int as events,
      coalesce(extract(epoch from now() - min(received_at)), 0)::float8 as oldest_seconds
    from billing_events where status = ${status}`
  return sql<InboxFigures[]>`
    select status, events, greatest(oldest_seconds, (
      select extract(epoch from now() - min(inbox_changed_at)) from users where inbox_changed_at is not null))::float8 as oldest_seconds
    from (${selectFigures(sql`'pending'`)}) pending
    union all ${selectFigures(sql`'parked'`)} union all ${selectFigures(sql`'dead'`)}
    union all ${selectFigures(sql`'unresolved'`)}`
}
