/**
 * Compares what we believe of each subscription with what its provider lists, and tells the actors what they missed. A
 * webhook may be lost for good; a list can't be.
 */
import { isDeepStrictEqual } from 'node:util'
import { recordCustomers } from '../db/billing-customers.ts'
import { keepEvent } from '../db/billing-events.ts'
import type { Database } from '../db/connection.ts'
import { newestFact, type OwnSubscription, ownSubscriptions } from '../db/subscriptions-listed.ts'
import type { BillingFact } from '../platform/billing-fact.ts'
import type { Logger } from '../platform/log.ts'
import type { BillingProvider, ListedSubscription } from '../providers/billing/provider.ts'

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
   * `told` to its actor; `held` for the next round; `repeated`: its actor was told just this before and saw it otherwise,
   * as with a subscription that goes on at the provider though its payment was refunded.
   */
  readonly became: 'told' | 'held' | 'repeated'
}

export interface Reconciliation {
  /** Subscriptions that the provider has. */
  readonly listed: number
  readonly changes: readonly Change[]
  /** Changes that became events; none in a dry run. */
  readonly applied: number
  readonly held: number
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
  for (const { userId, fact, ...difference } of differences) {
    const became = (await wasTold(sql, userId, fact)) ? 'repeated' : told < toldMax ? 'told' : 'held'
    if (became === 'told') {
      told += 1
      if (!dryRun) await tell(sql, provider.name, userId, fact)
    }
    changes.push({ ...difference, subscriptionId: fact.subscriptionId, kind: fact.kind, userId, became })
  }
  const held = changes.filter(({ became }) => became === 'held').length
  const applied = dryRun ? 0 : told
  const figures = { provider: provider.name, listed: listed.length, differ: changes.length, applied, held }
  if (held > 0) log.error(figures, 'too many subscriptions differ from the list of the billing provider: some wait')
  else if (told > 0) log.warn(figures, 'subscriptions differ from the list of the billing provider')
  if (unknown.length > 0)
    log.warn({ provider: provider.name, subscriptions: unknown.slice(0, 20) }, 'nobody is known to have them')
  return { listed: listed.length, changes, applied, held, unknown }
}

const customerOf = ({ fact: { subscriptionId }, customerId }: ListedSubscription) =>
  customerId === undefined ? [] : [{ subscriptionId, customerId }]

interface Difference {
  readonly userId: string
  readonly fact: BillingFact
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
    const asked = batch.map(({ fact, userRef }) => ({
      subscriptionId: fact.subscriptionId,
      kind: fact.kind,
      userId: uuidIn(userRef),
    }))
    const own = await ownSubscriptions(sql, provider, asked)
    for (const [index, { fact }] of batch.entries()) {
      const ours = own[index]
      if (!ours || isSame(fact, ours, Date.now())) continue
      if (ours.userId === null) unknown.push(fact.subscriptionId)
      else differences.push({ userId: ours.userId, fact, ours: ownInWords(ours), theirs: inWords(fact) })
    }
  }
  return { differences, unknown }
}

const uuidIn = (text: string | null): string | null =>
  text !== null && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text : null

const statuses: Readonly<Partial<Record<BillingFact['action'], OwnSubscription['status']>>> = {
  activate: 'active',
  update_addon: 'active',
  cancelled: 'cancelled',
  payment_failed: 'past_due',
  downgrade: 'ended',
}

const statusOf = ({ action, periodEnd }: BillingFact, now: number) =>
  action === 'cancelled' && periodEnd !== null && periodEnd <= now ? 'ended' : statuses[action]

function isSame(fact: BillingFact, ours: OwnSubscription, now: number): boolean {
  const status = statusOf(fact, now)
  // What ended before we heard of it is nothing to us.
  if (ours.status === null) return status === 'ended'
  if (status !== ours.status) return false
  if (status === 'ended' || status === 'past_due') return true
  const isSameQuantity = fact.kind === 'plan' || fact.quantity === null || fact.quantity === ours.quantity
  return isSameQuantity && (fact.periodEnd === null || fact.periodEnd === ours.periodEnd?.getTime())
}

/** Whether its last word to the actor was just this. Telling it again and again would change nothing. */
async function wasTold(sql: Database, userId: string, fact: BillingFact): Promise<boolean> {
  const newest = await newestFact(sql, fact.provider, fact.subscriptionId, userId)
  if (!newest?.key.startsWith('reconciled:')) return false
  return isDeepStrictEqual({ ...newest, key: '', at: 0 }, { ...fact, key: '', at: 0 })
}

/** Into the inbox, as if the provider had sent it: what happens with it is the same. */
const tell = (sql: Database, provider: BillingProvider['name'], userId: string, fact: BillingFact) =>
  keepEvent(sql, {
    provider,
    key: fact.key,
    type: 'reconciliation',
    userRef: userId,
    fact,
    problem: null,
    body: Buffer.alloc(0),
  })

const until = (date: number | null | undefined) => (date == null ? '' : ` until ${new Date(date).toISOString()}`)

const ownInWords = ({ status, quantity, periodEnd }: OwnSubscription): string =>
  status === null ? 'nothing' : `${status} × ${quantity}${until(periodEnd?.getTime())}`

const inWords = (fact: BillingFact): string =>
  `${statuses[fact.action]} × ${fact.quantity ?? 1}${until(fact.periodEnd)}`
