/** Notifies accounts whose relays end soon because of their age. */
import { endingSoonSeconds, longestSeconds } from '../../domain/relay/session.ts'
import type { Database } from '../connection.ts'
import { claimEndingSessions } from '../notifications/relay-notices.ts'
import type { Notify } from '../notifications/settings.ts'

/** Notifies of each relay once. @returns the number of relays, `rowsMax` at most. */
export const notifyOfEndingRelays = (
  sql: Database,
  { maxSessionSeconds }: { readonly maxSessionSeconds: number },
  rowsMax: number,
  notify: Notify,
): Promise<number> =>
  sql.begin(async (tx) => {
    const sessions = await claimEndingSessions(tx, endingSoonSeconds(maxSessionSeconds), rowsMax)
    for (const { id, userId, connectionId, region, createdAt, now } of sessions) {
      const after = (seconds: number) => new Date(createdAt.getTime() + seconds * 1000).toISOString()
      await notify(tx, userId, {
        kind: 'relay_ending_soon',
        timestamp: now.toISOString(),
        data: {
          session_id: id,
          connection_id: connectionId,
          region,
          idle_ends_at: after(maxSessionSeconds),
          ends_at: after(longestSeconds(maxSessionSeconds)),
        },
      })
    }
    return sessions.length
  })
