/** Writes rows of relay sessions as the API and the workflow would, for a service without a worker. */
import type { Database, Sql } from '../../db/connection.ts'
import type { ProvisioningDetail } from '../../domain/relay/session.ts'

/** Makes the transition to active, on an instance at 198.51.100.7. */
export async function writeActive(sql: Sql, sessionId: string, instanceId = 'i-1'): Promise<void> {
  await sql`
    update relay_sessions set state = 'active', reason = 'relay_ready', version = version + 1, active_at = now(),
      instance_id = ${instanceId}, relay_host = '198.51.100.7', srtla_port = 5000, publish_port = 4001, play_port = 4000,
      stats_port = 5080
    where id = ${sessionId}`
}

/** Records a command that no workflow carries out. */
export async function writeCommand(sql: Sql, sessionId: string, command: 'stop' | 'disconnect'): Promise<void> {
  await sql`
    update relay_sessions set command = ${command}, command_seq = command_seq + 1, commanded_at = now()
    where id = ${sessionId}`
}

/** Makes the transitions to active and to the stop grace. */
export async function writeStopGrace(sql: Sql, sessionId: string): Promise<void> {
  await writeActive(sql, sessionId)
  await writeCommand(sql, sessionId, 'stop')
  await sql`
    update relay_sessions set state = 'grace', reason = 'stop_requested', version = version + 1,
      grace_started_at = now(), grace_ends_at = now() + interval '1 minute'
    where id = ${sessionId}`
}

/** Stops the session, which makes its tokens invalid. */
export async function writeStopped(sql: Sql, sessionId: string): Promise<void> {
  await sql`
    update relay_sessions set state = 'stopped', reason = 'stop_requested', version = version + 1, stopped_at = now(),
      grace_ends_at = null, pair_token_sealed = null, pair_token_hash = null, relay_ws_token_sealed = null,
      relay_ws_token_hash = null
    where id = ${sessionId}`
}

/** Stops a session that is being provisioned, as one that could not be created. */
export async function writeProvisionFailed(
  sql: Sql,
  sessionId: string,
  detail: ProvisioningDetail | null,
): Promise<void> {
  await sql`
    update relay_sessions set state = 'stopped', reason = 'provision_failed', detail = ${detail}, version = version + 1,
      stopped_at = now(), pair_token_sealed = null, pair_token_hash = null, relay_ws_token_sealed = null,
      relay_ws_token_hash = null
    where id = ${sessionId}`
}

/** Makes a session older, without a session change. */
export const writeAge = (sql: Database, sessionId: string, seconds: number) =>
  sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`
    await tx`update relay_sessions set created_at = now() - make_interval(secs => ${seconds}) where id = ${sessionId}`
  })

/** State and command of each session of a user, the oldest first: `grace stop`. */
export const listStatesAndCommands = async (sql: Sql, userId: string): Promise<string[]> =>
  (
    await sql<{ state: string; command: string }[]>`
      select state, command from relay_sessions where user_id = ${userId} order by created_at`
  ).map(({ state, command }) => `${state} ${command}`)
