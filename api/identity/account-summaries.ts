/** Account summaries: everything that `GET /auth/session` shows, for many users in a few queries. */
import type { Database } from '../../db/connection.ts'
import { type Entitlement, findEntitlementsWithUsage } from '../../db/entitlements.ts'
import { findProfiles, type ProfileRow } from '../../db/profiles.ts'
import { findLiveRelays, type LiveRelays, noLiveRelays } from '../../db/relay-sessions.ts'
import type { Usage } from '../../db/usage.ts'
import type { Config } from '../../platform/config/config.ts'

export interface AccountSummary {
  /** This and the next two are undefined if the account does not exist. */
  readonly profile: ProfileRow | undefined
  readonly entitlement?: Entitlement
  readonly usage?: Usage
  readonly liveRelays: LiveRelays
}

/** @returns a summary per user id, in the given order. */
export async function findAccountSummaries(
  sql: Database,
  { timeBank }: Pick<Config, 'timeBank'>,
  userIds: string[],
): Promise<AccountSummary[]> {
  const uniqueIds = [...new Set(userIds)]
  const [profiles, accounts, liveRelays] = await Promise.all([
    findProfiles(sql, uniqueIds),
    findEntitlementsWithUsage(sql, uniqueIds, timeBank),
    findLiveRelays(sql, userIds),
  ])
  return userIds.map((userId, index) => ({
    profile: profiles.get(userId),
    ...accounts.get(userId),
    liveRelays: liveRelays[index] ?? noLiveRelays,
  }))
}
