/**
 * How the actors are spoken to, on one page. Ask = update, tell = signal, look = query.
 * Everything may be repeated. No message carries a secret: histories are kept and shown.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow'
import type { PlanStatus, PlanTier } from '../domain/plans.ts'
import type { Actor, Command, Millis, Session, Settings, State } from './relay-session-state.ts'

export const relaySessionWorkflow = 'relaySession'

export const relaySessionWorkflowId = (sessionId: string): string => `relay-session/${sessionId}`

export const sessionIdOf = (workflowId: string): string => workflowId.slice('relay-session/'.length)

export interface RelaySessionInput {
  readonly sessionId: string
  readonly userId: string
  readonly connectionId: string
  readonly region: string
  readonly createdAt: Millis
  readonly settings: Settings
  /** The state that an earlier run of this actor handed on, or that was read from Postgres for a restart. */
  readonly carried?: Session
  /** An execution that was lost is replaced: its state is compared with Postgres before anything else. */
  readonly isRestart?: boolean
  /** Events after which a run hands on to the next; Temporal's own suggestion unless given. */
  readonly historyEventsMax?: number
}

/** What the actor answers: its own view, without anything secret. */
export interface RelaySessionSnapshot {
  readonly sessionId: string
  readonly state: State
  readonly reason: string
  readonly version: number
  readonly region: string
  readonly instanceId: string | null
  readonly commandSeq: number
  readonly deadlineAt: Millis | null
  readonly longestAt: Millis
}

export interface CommandRequest {
  /** Its number within the session; an older one than the last is ignored. */
  readonly seq: number
  readonly command: Command
  readonly actor: Actor
}

/** Ask the relay to run or to end. Refuses nothing: a stopped session answers as it is. */
export const command = defineUpdate<RelaySessionSnapshot, [CommandRequest]>('relay.command')

export interface TransitionRequest {
  readonly to: State
  /** Names the request on the session's row; one that was withdrawn there is refused. */
  readonly requestId: string
}

/** Ask for one of the five moves by its end. Refused with `invalid_transition` when it is none. */
export const transition = defineUpdate<RelaySessionSnapshot, [TransitionRequest]>('relay.transition')

/** Tell it that its bound instance reported for the first time. Ignored unless provisioning. */
export const ready = defineSignal<[]>('relay.ready')

/** Tell it that no report came within the health timeout. Ignored unless active. */
export const healthLost = defineSignal<[]>('relay.healthLost')

/** Tell it that reports come again. Ignored unless in grace for lost health. */
export const healthRestored = defineSignal<[]>('relay.healthRestored')

/** The provider no longer has this instance. Ignored unless it is the bound one and the session waits for it. */
export const instanceGone = defineSignal<[{ readonly instanceId: string }]>('relay.instanceGone')

/** Wakes the workflow: it compares its state with the session's row and takes over the difference. */
export const wake = defineSignal<[]>('relay.wake')

/** Tell it that no one sends through the relay just now. Ignored unless it is over its longest duration. */
export const idle = defineSignal<[]>('relay.idle')

/** Look at the actor's own view. */
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
 * Makes the subscription workflow read its inbox in Postgres, because there are new events or because a deadline may have passed.
 * Has no payload: only the inbox counts. Safe to repeat.
 */
export const wakeSubscription = defineSignal<[]>('wake')

/** Answers the workflow's snapshot; null before it has read its inbox for the first time. */
export const subscriptionSnapshot = defineQuery<SubscriptionSnapshot | null>('snapshot')
