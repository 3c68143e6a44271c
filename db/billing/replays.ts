/** Replaces events of the inbox that are parsed again, by an operator or after a response of their provider. */
import type {
  BillingEvent,
  BillingEventAction,
  BillingEventStatus,
  BillingSource,
  ProviderAction,
} from '../../domain/billing/event.ts'
import type { ReceivedBillingEvent, UserRefSource } from '../../domain/billing/received-event.ts'
import { first, type Sql } from '../connection.ts'
import { type BillingEventRow, decideStatus, findEvent, firstAttemptAt, subscriptionRefFrom } from './events.ts'
import {
  assignOwner,
  findNamedAccount,
  lockAccounts,
  lockSubscriptions,
  markInboxChanged,
  type SubscriptionRef,
} from './owners.ts'

interface StoredEventRow {
  readonly provider: BillingSource
  readonly key: string
  readonly type: string
  readonly action: BillingEventAction | null
  readonly userRef: string | null
  readonly userRefSource: UserRefSource
  readonly subscriptionId: string | null
  readonly event: BillingEvent | null
  readonly status: BillingEventStatus
  readonly error: string | null
  readonly body: Buffer | null
}

export interface StoredEvent {
  readonly status: BillingEventStatus
  /** The result of the latest parsing. */
  readonly event: ReceivedBillingEvent
}

/** Returns undefined for an unknown id. */
export async function findStoredEvent(sql: Sql, id: string): Promise<StoredEvent | undefined> {
  const row = await first(sql<StoredEventRow[]>`
    select provider, event_key as key, type, action, user_ref, user_ref_source,
      subscription_id, event, status, error, body
    from billing_events where id = ${id}`)
  if (!row) return undefined
  const { status, error, action, subscriptionId, ...stored } = row
  const isProblem = row.event === null && status !== 'ignored' && status !== 'unresolved'
  const problem = isProblem ? (error ?? 'is not as documented') : null
  // The action is a provider's: an operator's event is never unresolved.
  const unresolved = status === 'unresolved' ? { action: action as ProviderAction, subscriptionId } : undefined
  return { status, event: { ...stored, problem, unresolved } }
}

/** Serialises replacements of an event, which may change its subscription. Must precede any other lock. */
export const lockEvent = async (tx: Sql, id: string): Promise<void> => {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`billing event ${id}`}, 0))`
}

export interface ReplacedEvent {
  readonly row: BillingEventRow
  /** Accounts whose inbox changed: the event's account, and its previous one. */
  readonly accounts: readonly string[]
}

/**
 * Replaces the parsed content of an event. The same transaction records the accounts whose inbox changed, so that a job
 * wakes their workflows even if this process crashes.
 */
export async function replaceEvent(
  tx: Sql,
  id: string,
  event: ReceivedBillingEvent,
): Promise<ReplacedEvent | undefined> {
  await lockEvent(tx, id)
  const before = await first(tx<{ provider: string; subscriptionId: string | null; userId: string | null }[]>`
    select provider, subscription_id, user_id from billing_events where id = ${id}`)
  if (!before) return undefined
  const { provider, subscriptionId } = before
  const previous = provider === 'operator' || subscriptionId === null ? undefined : { provider, subscriptionId }
  const next = subscriptionRefFrom(event)
  const isSame = previous?.subscriptionId === next?.subscriptionId
  const subscriptions = [next, isSame ? undefined : previous].filter(
    (subscription): subscription is SubscriptionRef => subscription !== undefined,
  )
  await lockSubscriptions(tx, subscriptions)
  await lockAccounts(tx, subscriptions, [event.userRef, before.userId], true)
  await updateContent(tx, id, event, next ? null : await findNamedAccount(tx, event.userRef))
  const changed: string[] = []
  for (const subscription of subscriptions) changed.push(...(await assignOwner(tx, subscription)))
  const row = await findEvent(tx, id)
  if (!row) return undefined
  const own = [before.userId, row.userId].filter((owner) => owner !== null)
  await markInboxChanged(tx, own)
  return { row, accounts: [...new Set([...own, ...changed])] }
}

async function updateContent(
  tx: Sql,
  id: string,
  received: ReceivedBillingEvent,
  userId: string | null,
): Promise<void> {
  const { type, userRef, userRefSource, event, unresolved } = received
  const { status, error } = decideStatus(received, userId)
  await tx`
    update billing_events set type = ${type}, action = ${(event ?? unresolved)?.action ?? null}, user_ref = ${userRef},
      user_ref_source = ${userRefSource ?? 'subscription'},
      subscription_id = ${(event ?? unresolved)?.subscriptionId ?? null}, user_id = ${userId},
      event = ${event && tx.json({ ...event })}, status = ${status}, error = ${error},
      occurred_at = ${event && new Date(event.at)}, attempts = 0,
      settled_at = ${status === 'ignored' ? tx`clock_timestamp()` : null},
      next_attempt_at = ${unresolved ? firstAttemptAt(tx) : null}
    where id = ${id}`
}
