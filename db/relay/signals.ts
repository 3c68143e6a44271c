/**
 * Signals of jobs to relay session workflows: which sessions are compared with Temporal, and how often one is
 * signalled.
 */
import type { RelayState } from '../../domain/relay/session.ts'
import { backoffSeconds } from '../backoff.ts'
import type { Sql } from '../connection.ts'

/** Live sessions older than `afterSeconds` whose workflow was started, which Temporal should list by now. */
export const listStartedSessions = async (
  sql: Sql,
  afterSeconds: number,
): Promise<{ id: string; state: RelayState }[]> =>
  sql<{ id: string; state: RelayState }[]>`
    select id, state from relay_sessions
    where state <> 'stopped' and command_delivered_seq > 0 and created_at < now() - make_interval(secs => ${afterSeconds})
    order by created_at, id`

/** Those of the sessions that had no transition within `afterSeconds`, including sessions that do not exist. */
export const sessionsWithoutRecentTransition = async (
  sql: Sql,
  ids: readonly string[],
  afterSeconds: number,
): Promise<string[]> =>
  (
    await sql<{ id: string }[]>`
      select named.id from unnest(${ids}::uuid[]) as named (id)
      where not exists (select from relay_transitions t
        where t.session_id = named.id and t.at > now() - make_interval(secs => ${afterSeconds}))`
  ).map((row) => row.id)

const backoff = { firstSeconds: 2, secondsMax: 60 }

/**
 * Those of the sessions that may be signalled now. Signals of a session have exponential backoff, which a transition or
 * a pause resets. Without it, the history of a workflow that cannot make progress would fill with signals.
 */
export const claimSignals = async (sql: Sql, ids: readonly string[]): Promise<string[]> => {
  const attempts = sql`case when signal_at > now() - make_interval(secs => ${2 * backoff.secondsMax})
    then signal_attempts + 1 else 0 end`
  return (
    await sql<{ id: string }[]>`
      with due as (
        select id from relay_sessions where id = any(${ids}::uuid[]) and coalesce(signal_at <= now(), true)
        order by id for no key update
      ), claimed as (
        update relay_sessions s set
          signal_attempts = ${attempts},
          signal_at = now() + make_interval(secs => ${backoffSeconds(sql, attempts, backoff)})
        from due where s.id = due.id
        returning s.id
      )
      select id from claimed
      -- A workflow without a row has no backoff.
      union all select named.id from unnest(${ids}::uuid[]) as named (id)
      where not exists (select from relay_sessions s where s.id = named.id)`
  ).map((row) => row.id)
}
