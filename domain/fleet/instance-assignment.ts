/** What an instance that reports without a session should do: wait, take its session, or stop. */
import { isInGraceFor, type RelayCommand, type RelayReason, type RelayState } from '../relay/session.ts'

export interface AssignmentObservation {
  readonly instanceId: string
  readonly isRetired: boolean
  /** The session that the instance belongs to, with its state and command; those are null for a deleted session. */
  readonly sessionId: string | null
  readonly state: RelayState | null
  readonly reason: RelayReason | null
  readonly command: RelayCommand | null
  /** The instance that is bound to that session. */
  readonly boundInstanceId: string | null
  /** The number of this instance in the session, and that of the bound one. */
  readonly binding: number
  readonly boundBinding: number | null
}

/** `unwanted`: it should stop. */
export type AssignmentStatus = 'unassigned' | 'assigned' | 'unwanted'

/**
 * An instance keeps its assignment as long as its session lives and has no other instance, so a relay may ask
 * repeatedly.
 */
export function assignmentStatus(observation: AssignmentObservation): AssignmentStatus {
  const { instanceId, isRetired, sessionId, state, reason, command, boundInstanceId } = observation
  if (isRetired) return 'unwanted'
  if (sessionId === null) return 'unassigned'
  const isLive = state !== null && state !== 'stopped' && command !== 'disconnect'
  if (!isLive) return 'unwanted'
  const isReplacement =
    reason !== null &&
    isInGraceFor({ state, reason }, 'health_lost') &&
    observation.binding > (observation.boundBinding ?? 0)
  return isReplacement || (boundInstanceId ?? instanceId) === instanceId ? 'assigned' : 'unwanted'
}
