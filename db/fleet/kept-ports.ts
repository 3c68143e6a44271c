/**
 * The ports that a connection keeps over its sessions and over replacements. Only instances of the local provider can
 * take other ports: those in a cloud have the same ones each.
 */
import type { RelayPorts } from '../../domain/relay/ports.ts'
import { type Fragment, first, type Sql } from '../connection.ts'

/** The ports of the connection of a session; no row when it has none yet. */
export const selectKeptPorts = (sql: Sql, sessionId: string | Fragment) => sql`
  select k.srtla_port, k.publish_port, k.play_port, k.stats_port
  from relay_sessions of_connection join connections k
    on k.user_id = of_connection.user_id and k.name = of_connection.connection_id
  where of_connection.id = ${sessionId} and k.srtla_port is not null`

/** @param instance the alias of a row of `instances`. */
export const canTakePorts = (sql: Sql, instance: Fragment) => sql`${instance}.provider = 'local'`

export const findKeptPorts = async (sql: Sql, sessionId: string): Promise<RelayPorts | null> =>
  (await first(sql<RelayPorts[]>`${selectKeptPorts(sql, sessionId)}`)) ?? null

/**
 * Records the ports that the bound instance of a session has: of the session, of the instance, and of the connection,
 * which keeps them.
 * @param ports null where the instance does not state them and has those that its provider stated.
 */
export async function recordPorts(sql: Sql, instanceId: string, ports: RelayPorts | null): Promise<void> {
  const { srtlaPort = null, publishPort = null, playPort = null, statsPort = null } = ports ?? {}
  await sql`
    with instance as (
      select instance_id, session_id, coalesce(${srtlaPort}::int, srtla_port) as srtla_port,
        coalesce(${publishPort}::int, publish_port) as publish_port, coalesce(${playPort}::int, play_port) as play_port,
        coalesce(${statsPort}::int, stats_port) as stats_port
      from instances i where instance_id = ${instanceId} and session_id is not null and ${canTakePorts(sql, sql`i`)}
    ), stored as (
      update instances i set srtla_port = n.srtla_port, publish_port = n.publish_port, play_port = n.play_port,
        stats_port = n.stats_port
      from instance n where i.instance_id = n.instance_id
        and (i.srtla_port, i.publish_port, i.play_port, i.stats_port)
          is distinct from (n.srtla_port, n.publish_port, n.play_port, n.stats_port)
    ), bound as (
      update relay_sessions s set srtla_port = n.srtla_port, publish_port = n.publish_port, play_port = n.play_port,
        stats_port = n.stats_port
      from instance n where s.id = n.session_id and s.instance_id = n.instance_id
        and (s.srtla_port, s.publish_port, s.play_port, s.stats_port)
          is distinct from (n.srtla_port, n.publish_port, n.play_port, n.stats_port)
    )
    update connections k set srtla_port = n.srtla_port, publish_port = n.publish_port, play_port = n.play_port,
      stats_port = n.stats_port
    from instance n join relay_sessions s on s.id = n.session_id
    where k.user_id = s.user_id and k.name = s.connection_id
      and (k.srtla_port, k.publish_port, k.play_port, k.stats_port)
        is distinct from (n.srtla_port, n.publish_port, n.play_port, n.stats_port)`
}
