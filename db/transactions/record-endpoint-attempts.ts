/** Records how deliveries to endpoints went, and disables endpoints that fail. */
import type { EndpointDisabledReason } from '../../domain/notifications/kinds.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { recordAuditEntry } from '../audit.ts'
import type { Database, Sql } from '../connection.ts'
import { findEndpoint, type OpenedEndpoint, openEndpoint } from '../notifications/endpoints.ts'

/** An endpoint whose attempts have all failed for this long is disabled. */
const failingDaysMax = 3

/** What deliveries read and record. All of it concerns the endpoint of this id, not one that has replaced it. */
export const createEndpointStore = (sql: Database, sealing: Sealing) => ({
  find: async (userId: string): Promise<OpenedEndpoint | undefined> => {
    const endpoint = await findEndpoint(sql, userId)
    return endpoint && openEndpoint(sealing, endpoint)
  },
  recordSuccess: async (id: string): Promise<void> => {
    await sql`update notification_endpoints set failing_since = null where id = ${id} and failing_since is not null`
  },
  /** Disables the endpoint when all attempts have failed for days. */
  recordFailure: async (id: string): Promise<void> => {
    await sql`update notification_endpoints set failing_since = now() where id = ${id} and failing_since is null`
    await disable(sql, id, 'failing', sql`failing_since < now() - make_interval(days => ${failingDaysMax})`)
  },
  recordGone: (id: string): Promise<void> => disable(sql, id, 'gone', sql`true`),
})

const disable = (
  sql: Database,
  id: string,
  reason: EndpointDisabledReason,
  condition: ReturnType<Sql>,
): Promise<void> =>
  sql.begin(async (tx) => {
    const [disabled] = await tx<{ userId: string; type: string }[]>`
      update notification_endpoints set disabled_at = now(), disabled_reason = ${reason}
      where id = ${id} and disabled_at is null and ${condition} returning user_id, type`
    if (!disabled) return
    const { userId, type } = disabled
    const detail = { type, reason }
    await recordAuditEntry(tx, { initiator: 'system', action: 'notification_endpoint_disabled', userId, detail })
  }) as Promise<void>
