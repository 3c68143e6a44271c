/**
 * Response times of the pages of operators and of a user with a long history, on a database with 10,000 live sessions,
 * 100,000 stopped ones and 100,000 accounts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../db/connection.ts'
import type { BenchData } from './data.ts'
import { figures } from './figures.ts'
import { call } from './load.ts'
import { spreadOf } from './pairs.ts'
import { type Row, single } from './rows.ts'
import { logProgress, type RunningProgram, region } from './stack.ts'

const accounts = 99_000
const liveSessions = 9_500
const reads = 12

export const operatorPassword = 'the password of the operators of the bench'

/** Adds accounts and live sessions to those of `fillDatabase`. */
export async function fillLargeTables(sql: Database): Promise<void> {
  logProgress(`adding ${accounts} accounts and ${liveSessions} live sessions`)
  await sql.begin(async (tx) => {
    // Disables the trigger, which requires that a session begins in its first state.
    await tx`set local session_replication_role = replica`
    await tx`
      insert into users (email, email_verified_at, stream_token_sealed, stream_token_hash, plan_tier, plan_status)
      select 'large-' || n || '@bench.test', now(), 'sealed', sha256(n::text::bytea),
        case when n % 5 = 0 then 'paid' else 'free' end, case when n % 5 = 0 then 'active' else 'none' end
      from generate_series(1, ${accounts}::int) n`
    await tx`
      insert into relay_sessions (user_id, connection_id, region, state, reason, version, command_initiator,
        command_delivered_seq, instance_id, relay_host, srtla_port, publish_port, play_port, stats_port, created_at, active_at)
      select id, 'default', ${region}, 'active', 'relay_ready', 1, 'user', 1, 'large-' || id, '198.51.100.7', 5000, 4001, 4000,
        5080, now() - interval '30 minutes', now() - interval '30 minutes'
      from users where email like 'large-%' order by id limit ${liveSessions}`
    const added = tx`relay_sessions where instance_id like 'large-%'`
    await tx`insert into instances (instance_id, session_id, region) select instance_id, id, region from ${added}`
    await tx`insert into usage_intervals (session_id, user_id, started_at) select id, user_id, active_at from ${added}`
    await tx`
      insert into relay_health (session_id, instance_id, ingest_at, is_publishing, bitrate_kbps, links, players, rtt_ms, loss_pct,
        engine, publishing_since, bytes_total)
      select id, instance_id, now(), true, 5200, 2, 1, 41.5, 0.25, 'srt-live-transmit', active_at, 123456789 from ${added}`
  })
  await sql`vacuum analyze`
}

/** Longer than results are shared by callers; see `memoizeWithTtl`. */
const sharedMillisMax = 1_050

interface Question {
  readonly figure: keyof typeof figures
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly isShared?: true
}

export async function measureLargeTables(api: RunningProgram, { users }: BenchData): Promise<Row[]> {
  const operator = { authorization: `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}` }
  const user = { authorization: users[0]?.bearer ?? '' }
  const questions: Question[] = [
    { figure: 'large_metrics', path: '/metrics', headers: {} },
    { figure: 'large_overview', path: '/api/v1/admin/overview', headers: operator, isShared: true },
    { figure: 'large_capacity', path: '/api/v1/capacity/status', headers: {}, isShared: true },
    { figure: 'large_sessions', path: '/api/v1/admin/sessions?state=active', headers: operator },
    { figure: 'large_sessions_region', path: '/api/v1/admin/sessions?region=elsewhere', headers: operator },
    { figure: 'large_users', path: '/api/v1/admin/users?plan_tier=paid', headers: operator },
    { figure: 'large_users_rare', path: '/api/v1/admin/users?plan_tier=free&plan_status=active', headers: operator },
    { figure: 'large_users_email', path: '/api/v1/admin/users?email=large-77@bench.test', headers: operator },
    { figure: 'large_history', path: '/api/v1/relay/sessions', headers: user },
    { figure: 'large_usage', path: '/api/v1/usage/days', headers: user },
  ]
  const rows: Row[] = []
  for (const question of questions) rows.push(await measureQuestion(api, question))
  return rows
}

async function measureQuestion(api: RunningProgram, { figure, path, headers, isShared }: Question): Promise<Row> {
  const latencies: number[] = []
  for (let read = -2; read < reads; read += 1) {
    if (isShared) await sleep(sharedMillisMax)
    const startedAt = performance.now()
    await call({ method: 'GET', url: `${api.url}${path}`, headers })
    if (read >= 0) latencies.push(performance.now() - startedAt)
  }
  const spread = spreadOf(latencies)
  logProgress(
    `${figures[figure].what}: ${spread.median.toFixed(1)} ms (${spread.min.toFixed(1)} to ${spread.max.toFixed(1)})`,
  )
  return single(figures[figure], spread.median, spread)
}
