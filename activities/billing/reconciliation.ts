/**
 * Compares the stored subscriptions with the provider's list, and records an event for each difference. A webhook may
 * be lost for good; the list is complete.
 */

import { isDeepStrictEqual } from 'node:util'
import { recordCustomers } from '../../db/billing/customers.ts'
import { type ListedOfNobody, queueListedOfErasedAccounts } from '../../db/billing/erased-account-subscriptions.ts'
import {
  findNewestEvent,
  findRecordedEvent,
  findSubscriptions,
  type StoredSubscription,
} from '../../db/billing/reconciliation.ts'
import type { Database } from '../../db/connection.ts'
import { recordEvent } from '../../db/transactions/record-billing-event.ts'
import type { BillingEvent } from '../../domain/billing/event.ts'
import type { SubscriptionKind, SubscriptionStatus } from '../../domain/billing/plans.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Logger } from '../../platform/log.ts'
import type { BillingProvider, ListedSubscription } from '../../providers/billing/provider.ts'

interface Deps {
  readonly sql: Database
  readonly provider: Pick<BillingProvider, 'name' | 'list'>
  readonly log: Logger
  /** Reports the outcomes without changes of the database. */
  readonly dryRun?: boolean
}

/**
 * `corrected`: recorded as an event. `held`: left for the next run. `repeated`: an equal event is recorded already, and
 * the account's workflow has not applied it. `unsettled`: the workflow has applied an equal event and decided
 * otherwise, for example because a payment of the subscription was refunded. An operator has to compare it with the
 * provider's dashboard.
 */
export const reconciliationOutcomes = ['corrected', 'held', 'repeated', 'unsettled'] as const
export type ReconciliationOutcome = (typeof reconciliationOutcomes)[number]

/** A subscription that differs, with both states in words. */
export interface ReconciledDifference {
  readonly subscriptionId: string
  readonly kind: SubscriptionKind
  readonly userId: string
  readonly stored: string
  readonly listed: string
  readonly outcome: ReconciliationOutcome
}

export interface Reconciliation {
  /** The number of subscriptions in the provider's list. */
  readonly listed: number
  readonly differences: readonly ReconciledDifference[]
  /** The number of recorded events; 0 in a dry run. */
  readonly corrected: number
  readonly held: number
  readonly unsettled: number
  /** The ids of subscriptions that have not ended and that belong to no known account. */
  readonly unknown: readonly string[]
}

/** More differences at once are more likely a mistake, such as another store's API key, than lost webhooks. */
const correctionsMax = 50
const batchRows = 500
const loggedMax = 20

/**
 * Rejects with BillingProviderError if the list cannot be read completely; then nothing changes. Subscriptions that the
 * list lacks are not compared. Safe to repeat: a second run records nothing more.
 */
export async function reconcile({ sql, provider, log, dryRun = false }: Deps): Promise<Reconciliation> {
  const list = await provider.list()
  if (!dryRun) await recordCustomers(sql, provider.name, list.flatMap(customerOf))
  const { found, ofNobody } = await compare(sql, provider.name, list)
  const erased = new Set(dryRun ? [] : await queueListedOfErasedAccounts(sql, provider.name, ofNobody))
  const unknown = ofNobody.map(({ subscriptionId }) => subscriptionId).filter((id) => !erased.has(id))
  const differences: ReconciledDifference[] = []
  let corrections = 0
  for (const { userId, isNamed, event, stored, listed } of found) {
    const outcome = await decideOutcome(sql, userId, event, corrections)
    if (outcome === 'corrected') {
      corrections += 1
      if (!dryRun) await recordCorrection(sql, provider.name, isNamed ? userId : null, event)
    }
    differences.push({ subscriptionId: event.subscriptionId, kind: event.kind, userId, stored, listed, outcome })
  }
  const count = (outcome: ReconciliationOutcome) =>
    differences.filter((difference) => difference.outcome === outcome).length
  const result = {
    listed: list.length,
    differences,
    corrected: dryRun ? 0 : corrections,
    held: count('held'),
    unsettled: count('unsettled'),
    unknown,
  }
  logResult(result, corrections, provider.name, log)
  return result
}

function logResult(
  { listed, differences, corrected, held, unsettled, unknown }: Reconciliation,
  corrections: number,
  provider: string,
  log: Logger,
): void {
  const figures = { provider, listed, differences: differences.length, corrected, held }
  if (held > 0)
    log.error(
      figures,
      'too many subscriptions differ from the list of the billing provider: some wait for the next run',
    )
  else if (corrections > 0) log.warn(figures, 'subscriptions differ from the list of the billing provider')
  if (unknown.length > 0)
    log.warn({ provider, subscriptions: unknown.slice(0, loggedMax) }, 'subscriptions belong to no known account')
  if (unsettled === 0) return
  const subscriptions = differences
    .filter(({ outcome }) => outcome === 'unsettled')
    .slice(0, loggedMax)
    .map((difference) => ({
      subscriptionId: difference.subscriptionId,
      stored: difference.stored,
      listed: difference.listed,
    }))
  log.warn({ provider, count: unsettled, subscriptions }, 'reconciliation cannot settle these differences')
}

const customerOf = ({ event: { subscriptionId }, customerId }: ListedSubscription) =>
  customerId === undefined ? [] : [{ subscriptionId, customerId }]

async function decideOutcome(
  sql: Database,
  userId: string,
  event: BillingEvent,
  corrections: number,
): Promise<ReconciliationOutcome> {
  const repetition = await findRepetition(sql, userId, event)
  if (repetition) return repetition.isApplied ? 'unsettled' : 'repeated'
  return corrections < correctionsMax ? 'corrected' : 'held'
}

interface Difference {
  readonly userId: string
  /** Whether the provider names this account; otherwise only the stored subscription does. */
  readonly isNamed: boolean
  readonly event: BillingEvent
  readonly stored: string
  readonly listed: string
}

async function compare(
  sql: Database,
  provider: string,
  list: readonly ListedSubscription[],
): Promise<{ found: Difference[]; ofNobody: ListedOfNobody[] }> {
  const found: Difference[] = []
  const ofNobody: ListedOfNobody[] = []
  for (let from = 0; from < list.length; from += batchRows) {
    const batch = list.slice(from, from + batchRows)
    const queries = batch.map(({ event: { subscriptionId, kind }, userRef }) => ({
      subscriptionId,
      kind,
      userId: parseUuid(userRef),
    }))
    const stored = await findSubscriptions(sql, provider, queries)
    for (const [index, { event }] of batch.entries()) {
      const own = stored[index]
      if (!own || isSame(event, own, Date.now())) continue
      const { userId } = own
      const named = queries[index]?.userId ?? null
      if (userId === null) {
        const isBilled = event.action !== 'cancelled' && event.action !== 'downgrade'
        ofNobody.push({ subscriptionId: event.subscriptionId, userId: named, isBilled })
      } else {
        const isNamed = userId === named
        found.push({ userId, isNamed, event, stored: describeStored(own), listed: describeListed(event) })
      }
    }
  }
  return { found, ofNobody }
}

const parseUuid = (text: string | null): string | null => (text !== null && isUuid(text) ? text.toLowerCase() : null)

const statusByAction: Readonly<Partial<Record<BillingEvent['action'], SubscriptionStatus>>> = {
  activate: 'active',
  update_addon: 'active',
  cancelled: 'cancelled',
  payment_failed: 'past_due',
  downgrade: 'ended',
}

const listedStatus = ({ action, periodEnd }: BillingEvent, now: number) =>
  action === 'cancelled' && periodEnd !== null && periodEnd <= now ? 'ended' : statusByAction[action]

function isSame(event: BillingEvent, stored: StoredSubscription, now: number): boolean {
  const status = listedStatus(event, now)
  // A subscription that ended before any event of it arrived has no effect.
  if (stored.status === null) return status === 'ended'
  if (status !== stored.status || (status !== 'ended' && stored.ownerId !== stored.userId)) return false
  if (status === 'ended' || status === 'past_due') return true
  const isSameQuantity =
    event.kind === 'plan'
      ? (event.addons ?? 0) === stored.addons
      : event.quantity === null || event.quantity === stored.quantity
  return isSameQuantity && (event.periodEnd === null || event.periodEnd === stored.periodEnd?.getTime())
}

/**
 * Finds an event that makes another one pointless: with this very key, or with equal content as the newest event of the
 * subscription in the account's inbox.
 */
async function findRepetition(sql: Database, userId: string, event: BillingEvent) {
  const recorded = await findRecordedEvent(sql, event.provider, event.key)
  if (recorded) return recorded
  const newest = await findNewestEvent(sql, event.provider, event.subscriptionId, userId)
  if (!newest?.event.key.startsWith('reconciled:')) return undefined
  return isDeepStrictEqual({ ...newest.event, key: '', at: 0 }, { ...event, key: '', at: 0 }) ? newest : undefined
}

/**
 * Records the event like one of the provider's webhooks.
 * @param userRef the account that the provider names; null if it names no existing account: then the event goes to the
 * subscription's owner.
 */
const recordCorrection = (
  sql: Database,
  provider: BillingProvider['name'],
  userRef: string | null,
  event: BillingEvent,
) =>
  recordEvent(sql, {
    provider,
    key: event.key,
    type: 'reconciliation',
    userRef,
    event,
    problem: null,
    body: Buffer.alloc(0),
  })

const describeEnd = (date: number | null | undefined) => (date == null ? '' : ` until ${new Date(date).toISOString()}`)

const describeAddons = (addons: number | null | undefined) => (addons ? ` with ${addons} add-ons` : '')

const describeStored = ({ status, quantity, addons, periodEnd, userId, ownerId }: StoredSubscription): string =>
  status === null
    ? 'none'
    : `${status} × ${quantity}${describeAddons(addons)}${describeEnd(periodEnd?.getTime())}${ownerId === userId ? '' : ` of account ${ownerId}`}`

const describeListed = ({ action, quantity, addons, periodEnd }: BillingEvent): string =>
  `${statusByAction[action]} × ${quantity ?? 1}${describeAddons(addons)}${describeEnd(periodEnd)}`
