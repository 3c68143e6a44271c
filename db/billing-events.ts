/**
 * The inbox of everything that providers and operators say about money. An event is kept before it is answered, and kept for
 * good: the subscription actor makes its state of nothing else. Moves through `status`:
 * pending (its actor is to take it) → applied · ignored (nothing to us) · parked (nobody's yet, or unreadable) → dead.
 * An operator may dismiss parked and dead ones (dismissed-events.ts).
 */
import { randomUUID } from 'node:crypto'
import type { Fragment } from 'postgres'
import type { BillingFact, BillingSource, FactAction } from '../platform/billing-fact.ts'
import { type Database, first, type Sql } from './connection.ts'

export type BillingEventStatus = 'pending' | 'applied' | 'ignored' | 'parked' | 'dead' | 'dismissed'

/** How long an event may wait for its account to appear before it counts as dead. */
const parkedDaysMax = 30

export interface BillingEvent {
  readonly provider: BillingSource
  readonly key: string
  /** The source's own name for what happened. */
  readonly type: string
  /** Our id of the account as the provider said it; null when only the subscription tells. */
  readonly userRef: string | null
  /** What the actor takes from it; null when it takes nothing. */
  readonly fact: BillingFact | null
  /** Why an event that should say something can't be taken. */
  readonly problem: string | null
  readonly body: Buffer
}

export interface KeptEvent {
  readonly id: string
  readonly status: BillingEventStatus
  readonly userId: string | null
}

/**
 * Keeps the event unless its key is known, which answers nothing. It holds the account against its actor's next write, so
 * that of a deadline and an event each sees the other, or comes after it.
 */
export const keepEvent = (sql: Database, event: BillingEvent): Promise<KeptEvent | undefined> =>
  sql.begin(async (tx) => keepEventIn(tx, event)) as Promise<KeptEvent | undefined>

/** The same within a transaction of the caller's. */
export async function keepEventIn(tx: Sql, event: BillingEvent): Promise<KeptEvent | undefined> {
  const userId = await ownerOf(tx, event)
  const { status, error } = placeOf(event, userId)
  const { fact } = event
  return first(
    await tx<KeptEvent[]>`
      insert into billing_events
        (provider, event_key, type, action, user_ref, subscription_id, user_id, fact, body, status, error, occurred_at)
      values (${event.provider}, ${event.key}, ${event.type}, ${fact?.action ?? null}, ${event.userRef},
        ${fact?.subscriptionId ?? null}, ${userId}, ${fact && tx.json({ ...fact })}, ${event.body}, ${status}, ${error},
        ${fact && new Date(fact.at)})
      on conflict (provider, event_key) do nothing
      returning id, status, user_id as "userId"`,
  )
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
export async function keepGrant(tx: Sql, { userId, planTier, addons, until }: Grant): Promise<string> {
  const action = planTier === 'paid' ? 'grant' : 'withdraw'
  const [clock] = await tx<{ at: number }[]>`
    select greatest(floor(extract(epoch from clock_timestamp()) * 1000), max((fact ->> 'at')::numeric) + 1)::float8 as at
    from billing_events where user_id = ${userId} and provider = 'operator'`
  const key = `${action}:${randomUUID()}`
  const bare = { provider: 'operator', subscriptionId: 'grant', kind: 'plan', invoiceId: null, amount: null } as const
  const fact: BillingFact = {
    ...bare,
    key,
    action,
    at: clock?.at ?? 0,
    quantity: addons,
    periodStart: null,
    periodEnd: until?.getTime() ?? null,
  }
  const event = { provider: 'operator', key, type: action, userRef: userId, fact, problem: null } as const
  const kept = await keepEventIn(tx, { ...event, body: Buffer.alloc(0) })
  if (!kept) throw new Error('a random key was taken')
  return kept.id
}

/** Where an event goes by what is known of it. */
function placeOf(
  { fact, problem, userRef }: BillingEvent,
  userId: string | null,
): { status: BillingEventStatus; error: string | null } {
  if (problem !== null) return { status: 'parked', error: problem }
  if (fact === null) return { status: 'ignored', error: null }
  if (userId !== null) return { status: 'pending', error: null }
  return { status: 'parked', error: userRef === null ? 'nobody is known to have this subscription' : 'no such account' }
}

/** Whose it is, by the id that it names, or else by what was told of its subscription before. Holds the account. */
async function ownerOf(tx: Sql, { provider, userRef, fact }: BillingEvent): Promise<string | null> {
  if (userRef === null && fact === null) return null
  const owner =
    userRef !== null
      ? accountNamed(tx, tx`${userRef}::text`)
      : tx`(${ownerOfSubscription(tx, provider, fact?.subscriptionId ?? '')})`
  return first(await tx<{ id: string }[]>`select id from users where id = ${owner} for share`)?.id ?? null
}

/** The account's id that a provider's text is; nothing when it is none. Not compared as text: no index would find it. */
const accountNamed = (sql: Sql, ref: Fragment) =>
  sql`case when ${ref} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (${ref})::uuid end`

const ownerOfSubscription = (sql: Sql, provider: string, subscriptionId: string) => sql`
  select e.user_id from billing_events e
  where e.provider = ${provider} and e.subscription_id = ${subscriptionId} and e.user_id is not null order by e.seq limit 1`

/** Hands parked events on whose account is there by now, and gives those up that waited too long. Answers both numbers. */
export async function sortParked(sql: Sql): Promise<{ found: number; buried: number }> {
  const found = await sql`
    update billing_events e set status = 'pending', error = null, user_id = u.id
    from users u
    where e.status = 'parked' and e.fact is not null and u.id = case
      when e.user_ref is not null then ${accountNamed(sql, sql`e.user_ref`)}
      else (select o.user_id from billing_events o where o.provider = e.provider and o.subscription_id = e.subscription_id
        and o.user_id is not null order by o.seq limit 1) end`
  const buried = await sql`
    update billing_events set status = 'dead'
    where status = 'parked' and received_at < now() - make_interval(days => ${parkedDaysMax})`
  return { found: found.count, buried: buried.count }
}

/**
 * Accounts with an event that their actor has not taken for longer than `afterSeconds`, those who wait longest first.
 * @param without who is not asked about.
 */
export const accountsWithNews = async (
  sql: Sql,
  afterSeconds: number,
  limit: number,
  without: readonly string[],
): Promise<string[]> =>
  (
    await sql<{ user_id: string }[]>`
      select user_id from billing_events
      where status = 'pending' and user_id is not null and received_at < now() - make_interval(secs => ${afterSeconds})
        and user_id <> all(${without}::uuid[])
      group by user_id order by min(seq) limit ${limit}`
  ).map((row) => row.user_id)

export interface InboxFact {
  readonly id: string
  readonly seq: number
  readonly isTaken: boolean
  readonly fact: BillingFact
}

/** What an account's actor goes by, in the order of acceptance, one page. */
export const factsOf = async (sql: Sql, userId: string, afterSeq: number, limit: number): Promise<InboxFact[]> =>
  sql<InboxFact[]>`
    select id, seq::float8 as seq, status = 'applied' as "isTaken", fact from billing_events
    where user_id = ${userId} and seq > ${afterSeq} and status in ('pending', 'applied')
    order by seq limit ${limit}`

/** Whether the account has events that its actor has neither taken nor is taking now. */
export const hasOtherNews = async (sql: Sql, userId: string, taken: readonly string[]): Promise<boolean> =>
  (
    await sql`
      select from billing_events where user_id = ${userId} and status = 'pending' and id <> all(${taken}::uuid[]) limit 1`
  ).length > 0

export const markApplied = async (sql: Sql, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await sql`
    update billing_events set status = 'applied', error = null, applied_at = coalesce(applied_at, clock_timestamp())
    where id = any(${ids}::uuid[]) and status = 'pending'`
}

export const statusOfEvent = async (sql: Sql, id: string): Promise<BillingEventStatus | undefined> =>
  first(await sql<{ status: BillingEventStatus }[]>`select status from billing_events where id = ${id}`)?.status

export interface BillingEventRow {
  id: string
  event_key: string
  provider: BillingSource
  type: string
  action: FactAction | null
  user_id: string | null
  status: BillingEventStatus
  received_at: Date
  occurred_at: Date | null
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

/** An event as it came, to be read again. */
export const eventAsItCame = async (sql: Sql, id: string): Promise<EventAsItCame | undefined> =>
  first(
    await sql<EventAsItCame[]>`
      select provider, event_key as key, body, user_id as "userId" from billing_events where id = ${id}`,
  )

export interface EventAsItCame {
  readonly provider: BillingSource
  readonly key: string
  readonly body: Buffer
  /** Who is known to have it by now. */
  readonly userId: string | null
}

/** Puts what was read anew in the place of what was understood before, for the actor to take. Holds the account first, as it does. */
export async function replaceEvent(tx: Sql, id: string, event: BillingEvent): Promise<BillingEventRow | undefined> {
  const userId = await ownerOf(tx, event)
  const { status, error } = placeOf(event, userId)
  const { fact } = event
  return first(
    await tx<BillingEventRow[]>`
      update billing_events set type = ${event.type}, action = ${fact?.action ?? null}, user_ref = ${event.userRef},
        subscription_id = ${fact?.subscriptionId ?? null}, user_id = ${userId}, fact = ${fact && tx.json({ ...fact })},
        status = ${status}, error = ${error}, occurred_at = ${fact && new Date(fact.at)}
      where id = ${id} returning ${eventColumns(tx)}`,
  )
}

/** Lets the actor take an event once more that has no bytes to be read again. */
export const takeEventAgain = async (tx: Sql, id: string): Promise<BillingEventRow | undefined> =>
  first(
    await tx<BillingEventRow[]>`
      update billing_events set status = case when fact is not null and user_id is not null then 'pending' else status end
      where id = ${id} returning ${eventColumns(tx)}`,
  )

interface InboxFigures {
  readonly status: BillingEventStatus
  readonly events: number
  /** Of the oldest among them, in seconds; 0 when there are none. */
  readonly oldestSeconds: number
}

/** How many events there are in each state that asks for somebody's attention. Each is counted by the index of its own. */
export const inboxFigures = async (sql: Sql): Promise<InboxFigures[]> => {
  const figuresOf = (status: Fragment) => sql`
    select ${status} as status, count(*)::int as events,
      coalesce(extract(epoch from now() - min(received_at)), 0)::float8 as "oldestSeconds"
    from billing_events where status = ${status}`
  return sql<InboxFigures[]>`
    ${figuresOf(sql`'pending'`)} union all ${figuresOf(sql`'parked'`)} union all ${figuresOf(sql`'dead'`)}`
}
