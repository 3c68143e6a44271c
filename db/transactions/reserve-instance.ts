/** Finds or reserves the instance of a session, before its provider is called. */
import type { Database, Sql } from '../connection.ts'
import {
  claimWarmInstance,
  findReservation,
  hasRoom,
  insertInstance,
  type Placement,
  type ReservedInstance,
  retireInstances,
} from '../fleet/instances.ts'
import { type AcceptedCommand, lockSessionToPlace } from '../relay/commands.ts'
import { hasReported } from '../relay/health.ts'

export type ReserveOutcome =
  /** The provider is to be asked for this instance. */
  | { readonly type: 'reserved'; readonly instance: ReservedInstance }
  /** The session has an instance: it was bound before, or is a warm one that it gets now. */
  | { readonly type: 'bound'; readonly instanceId: string; readonly hasReported: boolean }
  /** The region has as many instances as it may have. One of them may be a warm one that is starting. */
  | { readonly type: 'no_room' }
  /** The session has a command to end. */
  | { readonly type: 'newer_command'; readonly command: AcceptedCommand }
  /** The session is stopped, or was deleted with its account. */
  | { readonly type: 'not_wanted' }

interface ReserveRequest {
  readonly sessionId: string
  /** The instance that the session had and lost; null at first. It is retired unless it has reported after all. */
  readonly replaces: string | null
  /** The id of the instance that is reserved when the session has none. */
  readonly newInstanceId: string
  readonly placement: Placement
}

/** Safe to repeat. */
export const reserveInstance = (
  sql: Database,
  { sessionId, replaces, newInstanceId, placement }: ReserveRequest,
): Promise<ReserveOutcome> =>
  sql.begin(async (tx): Promise<ReserveOutcome> => {
    const session = await lockSessionToPlace(tx, sessionId)
    if (!session) return { type: 'not_wanted' }
    const { state, endingCommand, instanceId } = session
    if (endingCommand !== null) return { type: 'newer_command', command: endingCommand }
    if (instanceId !== null) {
      // Read after the lock, so that a report that came during the wait for it counts.
      const isReporting = await hasReported(tx, sessionId)
      const isLost = instanceId === replaces && state === 'provisioning' && !isReporting
      if (!isLost) return { type: 'bound', instanceId, hasReported: isReporting }
    }
    if (replaces !== null) await unbind(tx, sessionId, replaces)
    const reserved = await findReservation(tx, sessionId)
    if (reserved) return { type: 'reserved', instance: reserved }
    const [warm] = await claimWarmInstance(tx, sessionId, placement)
    if (warm) return { type: 'bound', instanceId: warm.instanceId, hasReported: false }
    if (!(await hasRoom(tx, placement))) return { type: 'no_room' }
    const instance = await insertInstance(tx, { instanceId: newInstanceId, sessionId, zone: 0 }, placement)
    return { type: 'reserved', instance }
  }) as Promise<ReserveOutcome>

/** Separates a session from the instance that it lost. */
async function unbind(tx: Sql, sessionId: string, instanceId: string): Promise<void> {
  await tx`
    update relay_sessions set instance_id = null, relay_host = null, relay_host_v6 = null, srtla_port = null,
      publish_port = null, play_port = null, stats_port = null, instance_bound_at = null, instance_missing_since = null
    where id = ${sessionId} and instance_id = ${instanceId}`
  await retireInstances(tx, [instanceId])
}
