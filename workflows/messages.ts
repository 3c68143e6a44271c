/**
 * The messages of the workflows on one page: an update requests and returns a result, a signal reports, a query reads.
 * Each message may be repeated. None contains a secret, because Temporal stores and shows histories.
 */

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow'
import type { PlanStatus, PlanTier } from '../domain/billing/plans.ts'
import type { Millis } from '../domain/millis.ts'
import {
  type Initiator,
  initiators,
  type RelayCommand,
  type RelaySessionSettings,
  type RelaySessionState,
  type RelayState,
  relayCommands,
} from '../domain/relay/session.ts'
import { isUuid } from '../domain/uuid.ts'

export const relaySessionWorkflow = 'relaySession'

export const relaySessionWorkflowId = (sessionId: string): string => `relay-session/${sessionId}`

export const sessionIdOf = (workflowId: string): string => workflowId.slice('relay-session/'.length)

/** False for a workflow that was started by hand under another id. */
export const isRelaySessionWorkflowId = (workflowId: string): boolean =>
  workflowId.startsWith('relay-session/') && isUuid(sessionIdOf(workflowId))

export interface RelaySessionInput {
  readonly sessionId: string
  readonly userId: string
  readonly connectionId: string
  readonly region: string
  readonly createdAt: Millis
  readonly settings: RelaySessionSettings
  /** The warm instance that the session got with its start. */
  readonly instanceId?: string | null
  /** The state of the run before a continue-as-new, or the state that a restart read from Postgres. */
  readonly resumeState?: RelaySessionState
  /** Replaces a lost execution: the state is compared with the session's row before anything else. */
  readonly isRestart?: boolean
  /** Continue-as-new happens beyond this many history events, and in any case when Temporal suggests it. */
  readonly historyEventsMax?: number
}

/** The state of a relay session workflow, for operators. */
export interface RelaySessionSnapshot {
  readonly sessionId: string
  readonly state: RelayState
  readonly reason: string
  readonly version: number
  readonly region: string
  readonly instanceId: string | null
  readonly commandSeq: number
  readonly deadlineAt: Millis | null
  /** From this time on the session is stopped as soon as it is idle. */
  readonly maxDurationAt: Millis
}

export interface CommandRequest {
  /** The number of the command within its session. A command that is older than the last one is ignored. */
  readonly seq: number
  readonly command: RelayCommand
  readonly initiator: Initiator
}

/** Whether a value, which anybody may send in the Temporal UI, is a {@link CommandRequest}. */
export const isCommandRequest = (value: Partial<CommandRequest> | null | undefined): value is CommandRequest =>
  Number.isSafeInteger(value?.seq) &&
  relayCommands.some((name) => name === value?.command) &&
  initiators.some((name) => name === value?.initiator)

/** Requests the relay to run or to end. It is never refused: a stopped session returns its snapshot. */
export const command = defineUpdate<RelaySessionSnapshot, [CommandRequest]>('relay.command')

export interface TransitionRequest {
  readonly to: RelayState
  /** The id of the operator's request on the session's row. A request that was withdrawn there is refused. */
  readonly requestId: string
}

/** Whether a value, which anybody may send in the Temporal UI, is a {@link TransitionRequest}. */
export const isTransitionRequest = (value: Partial<TransitionRequest> | null | undefined): value is TransitionRequest =>
  typeof value?.to === 'string' && typeof value.requestId === 'string'

/** Requests one of the five transitions by its target state. Refused with `invalid_transition` when it is not legal. */
export const transition = defineUpdate<RelaySessionSnapshot, [TransitionRequest]>('relay.transition')

/** The bound instance has sent its first report. Ignored unless the session is provisioning. */
export const ready = defineSignal<[]>('relay.ready')

/** No report came within the health timeout. Ignored unless the session is active. */
export const healthLost = defineSignal<[]>('relay.healthLost')

/** Reports arrive again. Ignored unless the session is in grace for lost health. */
export const healthRestored = defineSignal<[]>('relay.healthRestored')

/**
 * The provider no longer has this instance. Ignored unless it is the bound one, or the one that is to replace it, and
 * the session needs it.
 */
export const instanceGone = defineSignal<[{ readonly instanceId: string }]>('relay.instanceGone')

/** The instance was proved to be gone. Ignored unless it is the bound one and the session is active. */
export const relayGone = defineSignal<[{ readonly instanceId: string }]>('relay.relayGone')

/** The session's row may have changed: the workflow compares its state with the row and adopts the row. */
export const wake = defineSignal<[]>('relay.wake')

/** No stream comes in. Ignored unless the session has exceeded its longest duration. */
export const idle = defineSignal<[]>('relay.idle')

export const snapshot = defineQuery<RelaySessionSnapshot>('snapshot')

export const subscriptionWorkflow = 'subscription'

export const subscriptionWorkflowId = (userId: string): string => `subscription/${userId}`

export const userIdOf = (workflowId: string): string => workflowId.slice('subscription/'.length)

export interface SubscriptionInput {
  readonly userId: string
  /** History length at which a run continues as new; Temporal's own suggestion unless given. */
  readonly historyEventsMax?: number
}

/** The entitlement as the subscription workflow wrote it last. */
export interface SubscriptionSnapshot {
  readonly planTier: PlanTier
  readonly planStatus: PlanStatus
  readonly addons: number
  readonly graceEndsAt: Millis | null
  readonly endsAt: Millis | null
  /** When the workflow wakes up without a signal; null for never. */
  readonly wakesAt: Millis | null
}

/**
 * Makes the subscription workflow read its inbox in Postgres, because there are new events or because a deadline may
 * have passed. Has no payload: only the inbox counts. Safe to repeat.
 */
export const wakeSubscription = defineSignal<[]>('wake')

/** Answers the workflow's snapshot; null before it has read its inbox for the first time. */
export const subscriptionSnapshot = defineQuery<SubscriptionSnapshot | null>('snapshot')

export const warmInstancesWorkflow = 'warmInstances'

export const warmInstancesWorkflowId = (region: string): string => `warm-instances/${region}`

export const regionOf = (workflowId: string): string => workflowId.slice('warm-instances/'.length)

export interface WarmInstancesInput {
  readonly region: string
  /** Failed creations in a row. The next one waits longer after each. */
  readonly failures?: number
  /** History length at which a run continues as new; Temporal's own suggestion unless given. */
  readonly historyEventsMax?: number
}

/** The state of a region's warm instances, for operators. */
export interface WarmInstancesSnapshot {
  readonly region: string
  /** Instances without a session that are reserved or exist. */
  readonly unbound: number
  readonly creating: readonly string[]
  readonly destroying: readonly string[]
  readonly failures: number
  /** Nothing is created before; null when creations do not wait. */
  readonly pausedUntil: Millis | null
}

/**
 * Makes the workflow of a region's warm instances compare them with the configured number. Has no payload: only the
 * rows count. Safe to repeat.
 */
export const wakeWarmInstances = defineSignal<[]>('wake')

export const warmInstancesSnapshot = defineQuery<WarmInstancesSnapshot>('snapshot')
