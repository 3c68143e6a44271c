/** Finds or reserves the instance that is to replace a session's lost one, before its provider is called. */
import { isInGraceFor } from '../../domain/relay/session.ts'
import type { Database } from '../connection.ts'
import {
  claimWarmReplacement,
  findReplacement,
  hasRoom,
  insertInstance,
  type Placement,
  type ReservedInstance,
  retireInstances,
} from '../fleet/instances.ts'
import { isRegionDrained } from '../fleet/regions.ts'
import { type AcceptedCommand, lockSessionToPlace } from '../relay/commands.ts'

export type ReserveReplacementOutcome =
  /** The provider is to be asked for this instance. */
  | {
      readonly type: 'reserved'
      readonly instance: ReservedInstance
      readonly region: string
      readonly binding: number
    }
  /** A warm instance has the session, or the instance of an earlier attempt is launched. */
  | { readonly type: 'created'; readonly instanceId: string }
  /** The region has as many instances as it may have, or is drained. */
  | { readonly type: 'no_room' }
  /** The session has a command to end. */
  | { readonly type: 'newer_command'; readonly command: AcceptedCommand }
  /** The session waits for no instance any more. */
  | { readonly type: 'not_wanted' }

interface ReserveRequest {
  readonly sessionId: string
  /** An earlier replacement that never reported; it is retired. */
  readonly lostInstanceId: string | null
  /** The id of the instance that is reserved when the session has none yet. */
  readonly newInstanceId: string
  readonly placement: Placement
  /** Only a new instance can have the stable address of the session. */
  readonly mustBeNew: boolean
}

/** Safe to repeat. The lost instance stays bound: it may still come back before its replacement reports. */
export const reserveReplacement = (
  sql: Database,
  { sessionId, lostInstanceId, newInstanceId, placement, mustBeNew }: ReserveRequest,
): Promise<ReserveReplacementOutcome> =>
  sql.begin(async (tx): Promise<ReserveReplacementOutcome> => {
    const session = await lockSessionToPlace(tx, sessionId)
    if (!session) return { type: 'not_wanted' }
    if (session.endingCommand !== null) return { type: 'newer_command', command: session.endingCommand }
    if (!isInGraceFor(session, 'health_lost')) return { type: 'not_wanted' }
    if (lostInstanceId !== null) await retireInstances(tx, [lostInstanceId])
    const binding = session.binding + 1
    const found = await findReplacement(tx, sessionId, binding)
    if (found)
      return found.isLaunched
        ? { type: 'created', instanceId: found.instanceId }
        : { type: 'reserved', instance: found, region: found.region, binding }
    if (await isRegionDrained(tx, placement.region)) return { type: 'no_room' }
    const [warm] = mustBeNew ? [] : await claimWarmReplacement(tx, { sessionId, binding }, placement)
    if (warm) return { type: 'created', instanceId: warm.instanceId }
    if (!(await hasRoom(tx, placement))) return { type: 'no_room' }
    const instance = await insertInstance(tx, { instanceId: newInstanceId, sessionId, zone: 0, binding }, placement)
    return { type: 'reserved', instance, region: placement.region, binding }
  }) as Promise<ReserveReplacementOutcome>
