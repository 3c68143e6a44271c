/** Binds the instance that replaces a session's lost one, when it reports for the first time. */
import { isInGraceFor, type RelayCommand, type RelayReason, type RelayState } from '../../domain/relay/session.ts'
import { type Database, first } from '../connection.ts'
import { retireInstances } from '../fleet/instances.ts'
import { insertReplacement } from '../relay/replacements.ts'

/**
 * - `bound`: the instance is that of the session from now on, and the lost one is retired
 * - `not_launched`: its provider has not answered for it yet, so its address is not known
 * - `not_wanted`: the lost instance has come back, the session ends, or another instance was chosen
 */
export type BindReplacementOutcome = 'bound' | 'not_launched' | 'not_wanted'

interface WaitingSession {
  state: RelayState
  reason: RelayReason
  command: RelayCommand
  binding: number
  instanceId: string | null
}

/** Safe to repeat. Of two instances that report at the same time, the one whose transaction is first wins. */
export const bindReplacement = (
  sql: Database,
  sessionId: string,
  instanceId: string,
): Promise<BindReplacementOutcome> =>
  sql.begin(async (tx): Promise<BindReplacementOutcome> => {
    const session = await first(tx<WaitingSession[]>`
      select state, reason, command, binding, instance_id from relay_sessions where id = ${sessionId} for update`)
    if (session?.command !== 'run') return 'not_wanted'
    if (session.instanceId === instanceId) return 'bound'
    if (!isInGraceFor(session, 'health_lost')) return 'not_wanted'
    const binding = session.binding + 1
    const instance = await first(tx<{ isLaunched: boolean }[]>`
      select launched_at is not null as is_launched from instances
      where instance_id = ${instanceId} and session_id = ${sessionId} and binding = ${binding}
        and retired_at is null and gone_at is null for no key update`)
    if (!instance) return 'not_wanted'
    if (!instance.isLaunched) return 'not_launched'
    await insertReplacement(tx, { sessionId, binding, replacedBy: instanceId })
    await tx`
      update relay_sessions s set instance_id = i.instance_id, relay_host = coalesce(a.host, i.host),
        relay_host_v6 = case when a.host is null then i.host_v6 end,
        srtla_port = i.srtla_port, publish_port = i.publish_port, play_port = i.play_port, stats_port = i.stats_port,
        binding = ${binding}, region = i.region, instance_bound_at = now(), instance_missing_since = null
      from instances i left join relay_addresses a on a.session_id = i.session_id and a.region = i.region and a.can_move
      where s.id = ${sessionId} and i.instance_id = ${instanceId}`
    if (session.instanceId !== null) await retireInstances(tx, [session.instanceId])
    return 'bound'
  }) as Promise<BindReplacementOutcome>
