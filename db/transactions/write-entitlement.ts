/**
 * Writes what a subscription workflow decides: the account's entitlement, its subscriptions, and the relays that end
 * with it.
 */
import { decideSurplus, type LiveRelay } from '../../domain/billing/surplus-relays.ts'
import { countsAgainstLimit } from '../billing/entitlements.ts'
import { hasUnappliedEvents, markApplied } from '../billing/events.ts'
import {
  type LockedEntitlement,
  lockEntitlement,
  type NewEntitlement,
  storeEntitlement,
  storeSubscriptions,
} from '../billing/subscriptions.ts'
import { hasBegunTrial } from '../billing/trials.ts'
import type { Database, Sql } from '../connection.ts'
import { notifyOfEntitlement } from '../notifications/entitlement-notices.ts'
import type { Notify } from '../notifications/settings.ts'
import { recordCommand } from '../relay/commands.ts'

export interface WriteRequest extends NewEntitlement {
  /** The account's version when the workflow read the inbox. */
  readonly version: number
  /** The events that the entitlement was derived from, to be marked as applied. */
  readonly eventIds: readonly string[]
  readonly addonNoticeSeconds: number
  /** The length of trials; 0 for none. */
  readonly trialSeconds: number
}

export type WriteOutcome =
  | {
      readonly type: 'written'
      /** When the surplus relays end, in milliseconds since 1970; null if there are none. */
      readonly surplusEndsAt: number | null
      /** Number of relays that were ordered to disconnect. */
      readonly disconnectedRelays: number
    }
  /** New events were accepted, or another entitlement was written, since the inbox was read. */
  | { readonly type: 'outdated' }
  /** The account was deleted. */
  | { readonly type: 'gone' }

/**
 * Idempotent. The same transaction that reduces the entitlement orders the surplus relays to disconnect.
 * @param notify enqueues the notifications of the user.
 */
export const writeEntitlement = (sql: Database, request: WriteRequest, notify?: Notify): Promise<WriteOutcome> =>
  sql.begin(async (tx): Promise<WriteOutcome> => {
    const row = await lockEntitlement(tx, request.userId)
    if (!row) return { type: 'gone' }
    if (row.version !== request.version || (await hasUnappliedEvents(tx, request.userId, request.eventIds)))
      return { type: 'outdated' }
    const { surplusEndsAt, disconnectedRelays, relays } = await endSurplusRelays(tx, row, request)
    if (notify)
      await notifyOfEntitlement(tx, { ...request, surplusBefore: row.surplusEndsAt, surplusEndsAt, relays }, notify)
    await storeEntitlement(tx, row, request, surplusEndsAt)
    await storeSubscriptions(tx, request)
    await markApplied(tx, request.eventIds)
    return { type: 'written', surplusEndsAt: surplusEndsAt?.getTime() ?? null, disconnectedRelays }
  }) as Promise<WriteOutcome>

/**
 * Ends the surplus relays that are due. Returns when the others end, the number of relays that were ordered to
 * disconnect, and all relays that were live before.
 */
async function endSurplusRelays(
  tx: Sql,
  before: LockedEntitlement,
  { userId, entitlement, at, addonNoticeSeconds, trialSeconds }: WriteRequest,
): Promise<{ surplusEndsAt: Date | null; disconnectedRelays: number; relays: readonly LiveRelay[] }> {
  const relays = await lockLiveRelays(tx, userId)
  const { surplusEndsAt, relaysToEnd } = decideSurplus({
    planBefore: before,
    plan: entitlement,
    relays,
    surplusEndsAt: before.surplusEndsAt?.getTime() ?? null,
    now: at,
    noticeMillis: addonNoticeSeconds * 1000,
    hasTrial: trialSeconds > 0 && (await hasBegunTrial(tx, userId)),
  })
  for (const sessionId of relaysToEnd.toSorted()) await recordCommand(tx, sessionId, 'disconnect', 'system')
  return {
    surplusEndsAt: surplusEndsAt === null ? null : new Date(surplusEndsAt),
    disconnectedRelays: relaysToEnd.length,
    relays,
  }
}

/** In the order of ids, like all locks of several sessions. */
const lockLiveRelays = (tx: Sql, userId: string): Promise<LiveRelay[]> =>
  tx<LiveRelay[]>`
    select id, (extract(epoch from created_at) * 1000)::float8 as created_at, ${countsAgainstLimit(tx)} as counts_against_limit
    from relay_sessions s where user_id = ${userId} and state <> 'stopped' and command <> 'disconnect'
    order by id for no key update`
