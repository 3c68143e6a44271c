/** Instances without a session, and their reports. */
import type { Sql } from '../../db/connection.ts'
import type { RelayState } from '../../domain/relay/session.ts'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import type { Answer, Client } from './api.ts'
import { eventually } from './relays.ts'

export interface UnboundReply {
  readonly state: RelayState | null
  readonly desired: 'run' | 'stop'
  readonly report_in_seconds: number
  readonly assignment?: {
    readonly session_id: string
    readonly stream_token: string
    readonly binding: number
  } | null
}

/** @param body has no session unless it names one. */
export const reportUnbound = (api: Client, secret: string, body: object): Promise<Answer<UnboundReply>> =>
  api.post<UnboundReply>('/relay/health', { session_id: null, ...body }, { headers: { 'X-Relay-Auth': secret } })

interface WarmInstanceFields {
  readonly sessionId?: string | null
  readonly isWarm?: boolean
  /** What it runs; see `imageKey`. */
  readonly image?: string | null | undefined
}

/** Inserts the row of an instance that has started, by default of a warm one without a session. */
export async function insertWarmInstance(
  sql: Sql,
  { sessionId = null, isWarm = true, image = null }: WarmInstanceFields = {},
): Promise<string> {
  const instanceId = createInstanceId('local')
  await sql`
    insert into instances (instance_id, session_id, region, provider, image, is_warm, launched_at, host, srtla_port, publish_port,
      play_port, stats_port)
    values (${instanceId}, ${sessionId}, 'local', 'local', ${image}, ${isWarm}, now(), '198.51.100.7', 5000, 4001, 4000, 5080)`
  return instanceId
}

/** Assigns a warm instance to a session as a start does, with one statement. */
export const assignInstance = async (sql: Sql, instanceId: string, sessionId: string): Promise<void> => {
  await sql`
    with claimed as (
      update instances set session_id = ${sessionId}, assigned_at = now() where instance_id = ${instanceId} returning *
    )
    update relay_sessions s set instance_id = c.instance_id, relay_host = c.host, srtla_port = c.srtla_port,
      publish_port = c.publish_port, play_port = c.play_port, stats_port = c.stats_port, instance_bound_at = now()
    from claimed c where s.id = ${sessionId}`
}

/** Resolves once the API has stored a report of each instance. */
export const untilReported = async (sql: Sql, ...instanceIds: string[]): Promise<void> => {
  await eventually(
    () => sql`select instance_id from instances where instance_id in ${sql(instanceIds)} and last_report_at is null`,
    (missing) => missing.length === 0,
  )
}
