/**
 * Compares what we believe of each subscription with what its provider lists, and tells the actors what they missed. A
 * webhook may be lost for good; a list can't be.
 */
import { isDeepStrictEqual } from 'node:util'
import { recordCustomers } from '../../db/billing-customers.ts'
import { recordEvent } from '../../db/billing-events.ts'
import type { Database } from '../../db/connection.ts'
import {
  findNewestEvent,
  findRecordedEvent,
  findSubscriptions,
  type StoredSubscription,
} from '../../db/reconciliation.ts'
import type { BillingEvent } from '../../domain/billing-event.ts'
import type { Logger } from '../../platform/log.ts'
import type { BillingProvider, ListedSubscription } from '../../providers/billing/provider.ts'

interface Needs {
  readonly sql: Database
  readonly provider: Pick<BillingProvider, 'name' | 'list'>
  readonly log: Logger
  /** Says what it would do, and does nothing. */
  readonly dryRun?: boolean
}

export interface Change {
  readonly subscriptionId: string
  readonly kind: 'plan' | 'addon'
  readonly userId: string
  readonly ours: string
  readonly theirs: string
  /**
   * `told`: became an event; `held` for the next round; `repeated`: an earlier event says just this, and its account's
   * workflow has still to judge with it; `unsettled`: the workflow has judged with it and concluded otherwise, as with a
   * subscription that goes on at the provider though its payment was refunded. An operator has to look at that.
   */
  readonly became: 'told' | 'held' | 'repeated' | 'unsettled'
}

export interface Reconciliation {
  /** Subscriptions that the provider has. */
  readonly listed: number
  readonly changes: readonly Change[]
  /** Changes that became events; none in a dry run. */
  readonly applied: number
  readonly held: number
  /** Changes that reconciliation can't settle. */
  readonly unsettled: number
  /** Subscriptions that go on and that nobody is known to have, by their ids. */
  readonly unknown: readonly string[]
}

/** More differences than these at once are rather a mistake of somebody's than lost webhooks. */
const toldMax = 50
const batchRows = 500

/**
 * Rejects with BillingProviderError when the list can't be had whole, and then nothing is changed. What the list lacks
 * means nothing; a second round finds nothing more to tell.
 */
export async function reconcile({ sql, provider, log, dryRun = false }: Needs): Promise<Reconciliation> {
  const listed = await provider.list()
  if (!dryRun) await recordCustomers(sql, provider.name, listed.flatMap(customerOf))
  const { differences, unknown } = await compare(sql, provider.name, listed)
  const changes: Change[] = []
  let told = 0
  for (const { userId, isNamed, event, ...difference } of differences) {
    const before = await findRepetition(sql, userId, event)
    const became = before ? (before.isApplied ? 'unsettled' : 'repeated') : told < toldMax ? 'told' : 'held'
    if (became === 'told') {
      told += 1
      if (!dryRun) await tell(sql, provider.name, isNamed ? userId : null, event)
    }
    changes.push({ ...difference, subscriptionId: event.subscriptionId, kind: event.kind, userId, became })
  }
  const held = changes.filter(({ became }) => became === 'held').length
  const unsettled = changes.filter(({ became }) => became === 'unsettled')
  const applied = dryRun ? 0 : told
  const figures = { provider: provider.name, listed: listed.length, differ: changes.length, applied, held }
  if (held > 0) log.error(figures, 'too many subscriptions differ from the list of the billing provider: some wait')
  else if (told > 0) log.warn(figures, 'subscriptions differ from the list of the billing provider')
  if (unknown.length > 0)
    log.warn({ provider: provider.name, subscriptions: unknown.slice(0, 20) }, 'nobody is known to have them')
  if (unsettled.length > 0) {
    const subscriptions = unsettled
      .slice(0, 20)
      .map(({ subscriptionId, ours, theirs }) => ({ subscriptionId, ours, theirs }))
    const count = unsettled.length
    log.warn(
      { provider: provider.name, count, subscriptions },
      'reconciliation can not settle how these subscriptions differ',
    )
  }
  return { listed: listed.length, changes, applied, held, unsettled: unsettled.length, unknown }
}

const customerOf = ({ event: { subscriptionId }, customerId }: ListedSubscription) =>
  customerId === undefined ? [] : [{ subscriptionId, customerId }]

interface Difference {
  readonly userId: string
  /** Whether the provider names this account; else only our own rows do. */
  readonly isNamed: boolean
  readonly event: BillingEvent
  readonly ours: string
  readonly theirs: string
}

async function compare(
  sql: Database,
  provider: string,
  listed: readonly ListedSubscription[],
): Promise<{ differences: Difference[]; unknown: string[] }> {
  const differences: Difference[] = []
  const unknown: string[] = []
  for (let from = 0; from < listed.length; from += batchRows) {
    const batch = listed.slice(from, from + batchRows)
    const asked = batch.map(({ event, userRef }) => ({
      subscriptionId: event.subscriptionId,
      kind: event.kind,
      userId: uuidIn(userRef),
    }))
    const own = await findSubscriptions(sql, provider, asked)
    for (const [index, { event }] of batch.entries()) {
      const ours = own[index]
      if (!ours || isSame(event, ours, Date.now())) continue
      if (ours.userId === null) unknown.push(event.subscriptionId)
      else {
        const isNamed = ours.userId === asked[index]?.userId
        differences.push({ userId: ours.userId, isNamed, event, ours: ownInWords(ours), theirs: inWords(event) })
      }
    }
  }
  return { differences, unknown }
}

const uuidIn = (text: string | null): string | null =>
  text !== null && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : null

const statuses: Readonly<Partial<Record<BillingEvent['action'], StoredSubscription['status']>>> = {
  activate: 'active',
  update_addon: 'active',
  cancelled: 'cancelled',
  payment_failed: 'past_due',
  downgrade: 'ended',
}

const statusOf = ({ action, periodEnd }: BillingEvent, now: number) =>
  action === 'cancelled' && periodEnd !== null && periodEnd <= now ? 'ended' : statuses[action]

function isSame(event: BillingEvent, ours: StoredSubscription, now: number): boolean {
  const status = statusOf(event, now)
  // What ended before we heard of it is nothing to us.
  if (ours.status === null) return status === 'ended'
  if (status !== ours.status || (status !== 'ended' && ours.ownerId !== ours.userId)) return false
  if (status === 'ended' || status === 'past_due') return true
  const isSameQuantity = event.kind === 'plan' || event.quantity === null || event.quantity === ours.quantity
  return isSameQuantity && (event.periodEnd === null || event.periodEnd === ours.periodEnd?.getTime())
}

/**
 * The event that says the same already: kept under this very key, or the last one of the subscription in the account's inbox.
 * Keeping it again and again would change nothing.
 */
async function findRepetition(sql: Database, userId: string, event: BillingEvent) {
  const kept = await findRecordedEvent(sql, event.provider, event.key)
  if (kept) return kept
  const newest = await findNewestEvent(sql, event.provider, event.subscriptionId, userId)
  if (!newest?.event.key.startsWith('reconciled:')) return undefined
  return isDeepStrictEqual({ ...newest.event, key: '', at: 0 }, { ...event, key: '', at: 0 }) ? newest : undefined
}

/**
 * Into the inbox, as if the provider had sent it: what happens with it is the same.
 * @param userRef the account that the provider names; null when it names none that exists, and the event goes to the
 * subscription's owner.
 */
const tell = (sql: Database, provider: BillingProvider['name'], userRef: string | null, event: BillingEvent) =>
  recordEvent(sql, {
    provider,
    key: event.key,
    type: 'reconciliation',
    userRef,
    event,
    problem: null,
    body: Buffer.alloc(0),
  })

const until = (date: number | null | undefined) => (date == null ? '' : ` until ${new Date(date).toISOString()}`)

const ownInWords = ({ status, quantity, periodEnd, userId, ownerId }: StoredSubscription): string =>
  status === null
    ? 'nothing'
    : `${status} × ${quantity}${until(periodEnd?.getTime())}${ownerId === userId ? '' : ` of account ${ownerId}`}`

const inWords = (event: BillingEvent): string =>
  `${statuses[event.action]} × ${event.quantity ?? 1}${until(event.periodEnd)}`
