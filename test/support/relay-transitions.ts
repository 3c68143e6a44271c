/** Transitions of relay sessions, written directly to the database of a test file and without a workflow. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Sql } from '../../db/connection.ts'
import { bindInstance } from '../../db/fleet/instances.ts'
import { listTransitions } from '../../db/relay/sessions.ts'
import {
  type TransitionsOutcome,
  type TransitionsRequest,
  writeTransitions,
} from '../../db/transactions/write-transitions.ts'
import type { ProcessRole } from '../../domain/relay/health.ts'
import { startApi } from './api.ts'

export const relayReady = { to: 'active', reason: 'relay_ready', initiator: 'relay' } as const
export const healthLost = { to: 'grace', reason: 'health_lost', initiator: 'system' } as const
export const graceElapsed = { to: 'stopped', reason: 'grace_elapsed', initiator: 'timer' } as const
export const provisionTimeout = { to: 'stopped', reason: 'provision_timeout', initiator: 'timer' } as const
export const stopGrace = { to: 'grace', reason: 'stop_requested', initiator: 'user' } as const
export const stopNow = { to: 'stopped', reason: 'stop_requested', initiator: 'user' } as const

const settings = { provisionTimeoutSeconds: 20, healthTimeoutSeconds: 3, graceSeconds: 20, maxSessionSeconds: 3600 }

/** A request of a workflow that has made no transition and carried out the first command, changed by `fields`. */
export const transitionsRequest = (sessionId: string, fields: Partial<TransitionsRequest>): TransitionsRequest => ({
  sessionId,
  version: 0,
  commandSeq: 1,
  cause: 'command',
  transitions: [],
  graceSeconds: null,
  operatorRequestId: null,
  settings,
  healthIntervalSeconds: 1,
  trialSeconds: 0,
  ...fields,
})

/** For how long a deadline is postponed; NaN when it is not. */
export const postponedSeconds = (outcome: TransitionsOutcome): number =>
  outcome.type === 'postponed' ? outcome.forMillis / 1000 : Number.NaN

/** Starts the API, and returns access to the sessions of one user. */
export async function startTransitions(variables: Readonly<Record<string, string>> = {}) {
  const api = await startApi(variables)
  const { sql } = api
  const { userId } = await api.given.user()

  const insertSession = async (tx: Sql = sql): Promise<string> => {
    const [row] = await tx<{ id: string }[]>`
      insert into relay_sessions (user_id, connection_id, region, command_initiator, pair_token_sealed, pair_token_hash,
        relay_ws_token_sealed, relay_ws_token_hash)
      values (${userId}, ${randomUUID()}, 'here', 'user', 'sealed', ${randomBytes(32)}, 'sealed', ${randomBytes(32)})
      returning id`
    return row?.id ?? ''
  }

  const bind = async (sessionId: string) => {
    await sql`
      insert into instances (instance_id, session_id, region, host, srtla_port, publish_port, play_port, stats_port)
      values ('i-1', ${sessionId}, 'here', '198.51.100.7', 1, 2, 3, 4)
      on conflict (instance_id) do update set session_id = excluded.session_id`
    return bindInstance(sql, sessionId, 'i-1')
  }

  /** Moves the creation, the activation and the beginning of grace to an earlier time. */
  const ageSession = async (sessionId: string, seconds: number): Promise<void> => {
    await sql`
      update relay_sessions set created_at = created_at - make_interval(secs => ${seconds}),
        active_at = active_at - make_interval(secs => ${seconds}),
        grace_started_at = grace_started_at - make_interval(secs => ${seconds})
      where id = ${sessionId}`
  }

  const ageUsage = async (sessionId: string, seconds: number): Promise<void> => {
    await sql`
      update usage_intervals set started_at = started_at - make_interval(secs => ${seconds})
      where session_id = ${sessionId}`
  }

  return {
    api,
    sql,
    userId,
    insertSession,
    bind,
    ageSession,
    ageUsage,

    /** A session whose relay has been active for a minute. */
    insertActiveSession: async (): Promise<string> => {
      const id = await insertSession()
      await bind(id)
      await writeTransitions(sql, transitionsRequest(id, { transitions: [relayReady] }))
      await ageSession(id, 60)
      await ageUsage(id, 60)
      return id
    },

    /** Replaces the last report of the bound instance. */
    writeReport: async (sessionId: string, secondsAgo: number): Promise<void> => {
      await sql`
        insert into relay_health (session_id, instance_id, last_report_at)
        values (${sessionId}, 'i-1', now() - make_interval(secs => ${secondsAgo}))
        on conflict (session_id) do update set last_report_at = excluded.last_report_at`
    },

    /** Processes of the role have confirmed their presence since then, the last time just now. */
    writePresence: async (role: ProcessRole, sinceSecondsAgo: number): Promise<void> => {
      await sql`
        update presence set since = now() - make_interval(secs => ${sinceSecondsAgo}), seen_at = now()
        where role = ${role}`
    },

    /** No process of the role has confirmed its presence for a minute. */
    writeAbsence: async (role: ProcessRole): Promise<void> => {
      await sql`update presence set seen_at = now() - interval '1 minute' where role = ${role}`
    },

    /** The transitions so far: `provisioning → active: relay_ready`. */
    listHistory: async (sessionId: string): Promise<string[]> =>
      (await listTransitions(sql, sessionId)).map((row) => `${row.fromState} → ${row.toState}: ${row.reason}`),

    listUsage: async (sessionId: string) =>
      sql<{ seconds: number | null; endedSecondsAgo: number | null }[]>`
        select extract(epoch from ended_at - started_at)::float8 as seconds,
          extract(epoch from now() - ended_at)::float8 as ended_seconds_ago
        from usage_intervals where session_id = ${sessionId} order by id`,
  }
}
