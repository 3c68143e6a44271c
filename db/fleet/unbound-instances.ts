/**
 * Instances that report without a session: what is stored of their reports, and the sessions that they are assigned to.
 */
import type { RelayCommand, RelayState } from '../../domain/relay/session.ts'
import { type Database, listen, type Sql } from '../connection.ts'
import type { StoredStreamToken } from '../sealed-tokens.ts'

/** An instance with its session; the columns of the session and its owner are null without one. */
export interface UnboundInstance extends StoredStreamToken {
  instanceId: string
  isRetired: boolean
  sessionId: string | null
  /** Null also for a session that was deleted with its account. */
  userId: string | null
  state: RelayState | null
  command: RelayCommand | null
  /** The instance that is bound to the session. */
  boundInstanceId: string | null
}

/** Everything is read from one snapshot, so an instance never refers to a session whose start is not visible yet. */
const selectUnbound = (sql: Sql, instanceIds: readonly string[]) => sql`
  select i.instance_id, i.retired_at is not null as is_retired, i.session_id, s.user_id, s.state, s.command,
    s.instance_id as bound_instance_id, u.stream_token_sealed
  from instances i
    left join relay_sessions s on s.id = i.session_id
    left join users u on u.id = s.user_id
  where i.instance_id = any(${[...new Set(instanceIds)]}::text[])`

/** @returns the instance of each id, in their order; undefined for an unknown one. */
export const readUnboundInstances = async (
  sql: Sql,
  instanceIds: readonly string[],
): Promise<(UnboundInstance | undefined)[]> =>
  inOrderOf(instanceIds, await sql<UnboundInstance[]>`${selectUnbound(sql, instanceIds)}`)

/**
 * Stores that these instances have reported, and reads them. A row that another transaction has locked is only read,
 * since reports of other instances must not wait for an assignment; the next report stores its time.
 */
export const recordUnboundReports = async (
  sql: Sql,
  instanceIds: readonly string[],
): Promise<(UnboundInstance | undefined)[]> =>
  inOrderOf(
    instanceIds,
    await sql<UnboundInstance[]>`
      with reported as (
        select instance_id from instances, set_config('synchronous_commit', 'off', true)
        where instance_id = any(${[...new Set(instanceIds)]}::text[]) for no key update of instances skip locked
      ), stored as (
        update instances i set last_report_at = now(), gone_at = null
        from reported r where i.instance_id = r.instance_id
      )
      ${selectUnbound(sql, instanceIds)}`,
  )

function inOrderOf(instanceIds: readonly string[], rows: readonly UnboundInstance[]) {
  const byId = new Map(rows.map((row) => [row.instanceId, row]))
  return instanceIds.map((id) => byId.get(id))
}

interface Listener {
  readonly onAssigned: (instanceId: string) => void
  /** Called whenever listening begins, also after a lost connection: assignments before it may have been missed. */
  readonly onListening: () => void
}

/** Listens for changes of the session of warm instances, by the rules of `listen`. */
export async function listenForAssignments(sql: Database, { onAssigned, onListening }: Listener): Promise<void> {
  await listen(sql, 'instance_assigned', onAssigned, onListening)
}
