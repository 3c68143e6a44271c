/** Decides that a lost instance ends before the next one exists, which needs its ports or its address. */
import { isInGraceFor } from '../../domain/relay/session.ts'
import { type Database, hasRow } from '../connection.ts'
import { retireInstances } from '../fleet/instances.ts'
import { lockSessionToPlace } from '../relay/commands.ts'

/**
 * - `given_up`: no report of the instance makes the session active any more, so it can be destroyed
 * - `came_back`: it has reported since it was lost, and the session is active in a moment
 * - `not_wanted`: the session waits for no other instance any more
 */
export type GiveUpOutcome = 'given_up' | 'came_back' | 'not_wanted'

/** Safe to repeat. A transition by a report and this decision lock the same row, so one of them comes first. */
export const giveUpInstance = (sql: Database, sessionId: string, instanceId: string): Promise<GiveUpOutcome> =>
  sql.begin(async (tx): Promise<GiveUpOutcome> => {
    const session = await lockSessionToPlace(tx, sessionId)
    if (session?.endingCommand !== null || !isInGraceFor(session, 'health_lost')) return 'not_wanted'
    const isBack = await hasRow(tx`
      select from relay_sessions s join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
        join instances i on i.instance_id = s.instance_id
      where s.id = ${sessionId} and s.instance_id = ${instanceId} and h.last_report_at > s.grace_started_at
        and i.retired_at is null`)
    if (isBack) return 'came_back'
    await retireInstances(tx, [instanceId])
    return 'given_up'
  }) as Promise<GiveUpOutcome>
