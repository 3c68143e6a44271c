/**
 * Instances that report without a session: what is stored of their reports, and the sessions that they are assigned to.
 */
import type { RelayPorts } from '../../domain/relay/ports.ts'
import type { RelayCommand, RelayReason, RelayState } from '../../domain/relay/session.ts'
import { type Database, listen, type Sql } from '../connection.ts'
import { type AdmissionColumns, admissionColumns } from '../relay-admissions.ts'
import { canTakePorts } from './kept-ports.ts'

/** An instance with its session; the columns of the session and its owner are null without one. */
export interface UnboundInstance extends AdmissionColumns {
  instanceId: string
  isRetired: boolean
  sessionId: string | null
  /** Null also for a session that was deleted with its account. */
  userId: string | null
  state: RelayState | null
  reason: RelayReason | null
  command: RelayCommand | null
  /** The instance that is bound to the session. */
  boundInstanceId: string | null
  /** The number of this instance in the session, and that of the bound one. */
  binding: number
  boundBinding: number | null
  /** The ports that it should take; null for those that it has. */
  ports: RelayPorts | null
}

/** Everything is read from one snapshot, so an instance never refers to a session whose start is not visible yet. */
const selectUnbound = (sql: Sql, instanceIds: readonly string[]) => sql`
  select i.instance_id, i.retired_at is not null as is_retired, i.session_id, s.user_id, s.state, s.reason, s.command,
    s.instance_id as bound_instance_id, i.binding, s.binding as bound_binding, ${admissionColumns(sql)},
    case when k.label is not null then json_build_object('srtlaPort', k.srtla_port, 'publishPort', k.publish_port,
      'playPort', k.play_port, 'statsPort', k.stats_port) end as ports
  from instances i
    left join relay_sessions s on s.id = i.session_id
    left join users u on u.id = s.user_id
    left join connections k on k.user_id = s.user_id and k.name = s.connection_id and k.srtla_port is not null
      and ${canTakePorts(sql, sql`i`)}
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
