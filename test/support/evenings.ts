/** Sessions with a stream record of hours, which no relay has sent. */

import type { Database } from '../../db/connection.ts'
import { packPoint } from '../../domain/relay/stream-record.ts'

interface Evening {
  readonly userId: string
  readonly hours: number
  readonly connectionId?: string
}

/**
 * A session that ended at the last full ten minutes, with a point for each 10 s, and with a stream that was weak and
 * lost in its middle.
 */
export const addEvening = (sql: Database, { userId, hours, connectionId = 'evening' }: Evening) =>
  sql.begin(async (tx) => {
    const weak = packPoint({ bitrateKbps: 300, links: 1, lossTenths: 90, rttMs: 400, players: 1 })
    const good = packPoint({ bitrateKbps: 4000, links: 3, lossTenths: 5, rttMs: 60, players: 1 })
    // Without the trigger, which requires that a session begins in its first state.
    await tx`set local session_replication_role = replica`
    const [row] = await tx<{ id: string; startedAt: Date; endedAt: Date }[]>`
      insert into relay_sessions (
        user_id, connection_id, region, state, reason, command, command_initiator, created_at, active_at, stopped_at)
      select ${userId}, ${connectionId}, 'here', 'stopped', 'stop_requested', 'stop', 'user',
        ended_at - make_interval(hours => ${hours}::int), ended_at - make_interval(hours => ${hours}::int), ended_at
      from (select to_timestamp(floor(extract(epoch from now()) / 600) * 600) as ended_at) e
      returning id, created_at as started_at, stopped_at as ended_at`
    if (!row) throw new Error('the session was not stored')
    await tx`insert into relay_health (session_id, instance_id) values (${row.id}, 'i-1')`
    await tx`
      insert into stream_records (session_id, began_at, points)
      select id, created_at + make_interval(mins => 10 * part),
        pack_stream_points(array_fill(case part when ${hours * 3} then ${weak}::bigint else ${good}::bigint end, array[60]))
      from relay_sessions, generate_series(0, ${hours * 6 - 1}::int) part where id = ${row.id}`
    const middle = row.startedAt.getTime() + (hours * 3_600_000) / 2
    const events = [
      ['stream_started', row.startedAt.getTime() + 5000, 4000],
      ['stream_weak', middle, 300],
      ['stream_lost', middle + 30_000, 0],
      ['stream_recovered', middle + 600_000, 4000],
      ['stream_ended', row.endedAt.getTime(), 0],
    ] as const
    for (const [index, [kind, at, kbps]] of events.entries())
      await tx`
        insert into stream_events (session_id, number, kind, at, bitrate_kbps)
        values (${row.id}, ${index + 1}, ${kind}, ${new Date(at)}, ${kbps})`
    return { ...row, middle: new Date(middle) }
  }) as Promise<{ readonly id: string; readonly startedAt: Date; readonly endedAt: Date; readonly middle: Date }>
