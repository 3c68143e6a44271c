/**
 * The load of the Postgres server, and which processes of the service have confirmed that they work and can be reached.
 */
import type { ProcessRole } from '../../domain/relay/health.ts'
import { first, type Sql } from '../connection.ts'

interface ServerFigures {
  /** Connections of all clients of the server. */
  readonly connections: number
  /** The number of connections that the server permits to ordinary users. */
  readonly connectionsMax: number
  readonly absences: readonly { readonly role: ProcessRole; readonly seconds: number }[]
  /**
   * Since the workers' probes of the API through its public address fail; 0 while they succeed, or when none ever did.
   */
  readonly probeFailingSeconds: number
}

/** Absences are the times since a process of each role last confirmed that it can work. */
export async function readServerFigures(sql: Sql): Promise<ServerFigures> {
  const row = await first(sql<ServerFigures[]>`
    select (select sum(numbackends) from pg_stat_database)::int as connections,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as connections_max,
      (select json_agg(json_build_object('role', role,
        'seconds', greatest(0, extract(epoch from clock_timestamp() - seen_at)))) from presence) as absences,
      coalesce((select extract(epoch from clock_timestamp() - failing_since)::float8 from api_probe
        where reached_at is not null), 0) as probe_failing_seconds`)
  return row ?? { connections: 0, connectionsMax: 0, absences: [], probeFailingSeconds: 0 }
}
