/**
 * Three weeks of ended relays for the pictures of the documentation. All other figures in them come from relays that
 * run.
 */
import { randomUUID } from 'node:crypto'
import type postgres from 'postgres'

interface Ended {
  readonly connectionId: string
  readonly region: string
  readonly startedAt: Date
  readonly endedAt: Date
  readonly reason: 'stop_requested' | 'grace_elapsed' | 'provision_failed'
  readonly kbps: number
}

const hourMillis = 3_600_000
const names = ['main-camera', 'backpack', 'second-camera']

/**
 * The same shape in each run: a stream on most evenings, some with a second relay, and a few that ended in another way.
 */
function endedRelays(now: Date, regions: readonly string[]): Ended[] {
  const days = Array.from({ length: 20 }, (_, index) => index + 1).filter((day) => day % 4 !== 0)
  return days.flatMap((day) => {
    const evening = new Date(now.getTime() - day * 24 * hourMillis)
    evening.setUTCHours(17 + (day % 3), (day * 13) % 60, 0, 0)
    return names.slice(0, 1 + (day % 3)).map((connectionId, index) => {
      const isShort = day === 5 && index === 0
      const hours = isShort ? 0.02 : 1.2 + ((day * 7 + index * 5) % 9) * 0.45
      return {
        connectionId,
        region: regions[(day + index) % regions.length] ?? '',
        startedAt: evening,
        endedAt: new Date(evening.getTime() + hours * hourMillis),
        reason: isShort ? 'provision_failed' : day % 7 === 3 ? 'grace_elapsed' : 'stop_requested',
        kbps: 3800 + ((day * 331 + index * 977) % 2900),
      }
    })
  })
}

/** Adds the relays to the account. The triggers that check transitions are off, since the rows are complete lives. */
export async function insertEndedRelays(
  sql: postgres.Sql,
  userId: string,
  now: Date,
  regions: readonly string[],
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`
    for (const relay of endedRelays(now, regions)) await insertEndedRelay(tx, userId, relay)
  })
}

async function insertEndedRelay(sql: postgres.TransactionSql, userId: string, relay: Ended): Promise<void> {
  const [id, { startedAt, endedAt, kbps }] = [randomUUID(), relay]
  const seconds = relay.reason === 'provision_failed' ? 0 : (endedAt.getTime() - startedAt.getTime()) / 1000 - 120
  const activeAt = seconds > 0 ? new Date(startedAt.getTime() + 4000) : null
  await sql`
    insert into relay_sessions (id, user_id, connection_id, region, state, reason, version, command, command_initiator,
      command_delivered_seq, created_at, active_at, stopped_at, detail)
    values (${id}, ${userId}, ${relay.connectionId}, ${relay.region}, 'stopped', ${relay.reason}, 3, 'run', 'user', 1,
      ${startedAt}, ${activeAt}, ${endedAt}, ${seconds > 0 ? null : 'capacity'})`
  if (!activeAt) return
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at) values (${id}, ${userId}, ${activeAt}, ${endedAt})`
  await sql`
    insert into relay_health (session_id, instance_id, engine, is_publishing, bytes_received, peak_bitrate_kbps, seconds_publishing)
    values (${id}, 'local-0', 'srt-live-transmit', false, ${Math.round((seconds * kbps * 1000) / 8)}, ${kbps + 1200}, ${seconds})`
  const lost = new Date(endedAt.getTime() - 120_000)
  const [graceReason, initiator] =
    relay.reason === 'grace_elapsed' ? ['health_lost', 'timer'] : ['stop_requested', 'user']
  await sql`
    insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator, at)
    values (${id}, 1, 'provisioning', 'active', 'relay_ready', 'relay', ${activeAt}),
      (${id}, 2, 'active', 'grace', ${graceReason ?? ''}, ${initiator ?? ''}, ${lost}),
      (${id}, 3, 'grace', 'stopped', ${relay.reason}, ${initiator ?? ''}, ${endedAt})`
}

/** Fills the ten minutes before now of the running relays, so that a picture need not wait for them. */
export const fillRecentBitrate = async (sql: postgres.Sql): Promise<void> => {
  await sql`
    update relay_health set recent_bitrate_kbps = (
      select array_agg((bitrate_kbps * (0.82 + 0.14 * sin(slot / 3.0) + 0.06 * sin(slot * 1.7)))::int order by slot)
      from generate_series(1, 60) as slot)
    where is_publishing`
}
