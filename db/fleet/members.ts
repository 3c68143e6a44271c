/** Which of the instances that a provider shows belong to this database. */
import type { Sql } from '../connection.ts'
import { type ListedInstance, sessionIdOfTag } from './orphans.ts'

/**
 * The ids of those whose creation or whose session is stored. A row that a sweep has added for an instance that it
 * found proves nothing.
 */
export async function findKnownInstances(sql: Sql, seen: readonly ListedInstance[]): Promise<ReadonlySet<string>> {
  const sessionIds = seen.map(({ sessionId }) => sessionIdOfTag(sessionId))
  const rows = await sql<{ instanceId: string }[]>`
    select l.instance_id
    from unnest(${seen.map(({ instanceId }) => instanceId)}::text[], ${sessionIds}::uuid[]) as l (instance_id, session_id)
    where exists (select from instances i where i.instance_id = l.instance_id and i.provider is not null)
      or exists (select from relay_sessions s where s.id = l.session_id)`
  return new Set(rows.map(({ instanceId }) => instanceId))
}
