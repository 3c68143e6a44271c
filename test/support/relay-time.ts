/** Relay time used before the test. */
import { randomUUID } from 'node:crypto'
import type { Database } from '../../db/connection.ts'

/** Adds a stopped session of this duration that ended this many days ago. */
export async function useRelayTime(sql: Database, userId: string, seconds: number, daysAgo = 0): Promise<void> {
  const [session] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
    values (${userId}, ${randomUUID()}, 'local', 'user', 1) returning id`
  const id = session?.id ?? ''
  await sql`update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${id}`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    select ${id}, ${userId}, ended_at - make_interval(secs => ${seconds}), ended_at
    from (select now() - make_interval(days => ${daysAgo}) as ended_at) used`
}
