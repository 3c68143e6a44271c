/**
 * The rules of a relay session: four states, five legal transitions, and the transitions that each event causes.
 * Everything is pure and takes the time as an argument, so a property test can run through any life of a session.
 */
import type { Millis } from '../millis.ts'

export const relayStates = ['provisioning', 'active', 'grace', 'stopped'] as const
export type RelayState = (typeof relayStates)[number]

export const relayReasons = [
  'relay_ready',
  'provision_failed',
  'provision_timeout',
  'health_lost',
  'health_restored',
  'start_requested',
  'stop_requested',
  'force_disconnected',
  'grace_elapsed',
] as const
export type RelayReason = (typeof relayReasons)[number]

/** Why provisioning failed, where the provider stated it: no room, a limit of our account, or our own settings. */
export const provisioningDetails = ['capacity', 'quota', 'configuration'] as const
export type ProvisioningDetail = (typeof provisioningDetails)[number]

/** Why an instance was given up: it was proved to be gone, or it did not report within the health timeout. */
export const lossCauses = ['relay_gone', 'relay_silent'] as const
export type LossCause = (typeof lossCauses)[number]

/**
 * What a session's reason leaves open. `relay_unstable`: its instances were lost too often in an hour. `trial_ended`:
 * the time of the account's trial is used up.
 */
export const sessionDetails = [
  ...provisioningDetails,
  ...lossCauses,
  'relay_replaced',
  'relay_unstable',
  'trial_ended',
] as const
export type SessionDetail = (typeof sessionDetails)[number]

/** A session whose instance is lost again after so many replacements within an hour ends. */
export const replacementsPerHourMax = 3

/** Who caused a command or a transition. */
export const initiators = ['user', 'operator', 'relay', 'timer', 'system'] as const
export type Initiator = (typeof initiators)[number]

/** The five legal transitions, each with its possible reasons. Postgres holds the same table and refuses all others. */
export const legalTransitions = {
  provisioning: {
    active: ['relay_ready'],
    stopped: ['provision_failed', 'provision_timeout', 'stop_requested', 'force_disconnected'],
  },
  active: { grace: ['health_lost', 'stop_requested', 'force_disconnected'] },
  grace: {
    active: ['health_restored', 'start_requested'],
    stopped: ['grace_elapsed', 'stop_requested', 'force_disconnected'],
  },
  stopped: {},
} as const satisfies Record<RelayState, Partial<Record<RelayState, readonly RelayReason[]>>>

/** @param reason when it is omitted, any reason will do. */
export const isLegalTransition = (from: RelayState, to: RelayState, reason?: RelayReason): boolean => {
  const reasons = (legalTransitions[from] as Partial<Record<RelayState, readonly RelayReason[]>>)[to]
  return reasons !== undefined && (reason === undefined || reasons.includes(reason))
}

export interface Transition {
  readonly to: RelayState
  readonly reason: RelayReason
  readonly initiator: Initiator
}

/**
 * The last request about a session. `run`: stay, or come back from a stop. `stop`: end after the stop grace. `stop_now`
 * and `disconnect`: end at once, where a `disconnect` is final.
 */
export const relayCommands = ['run', 'stop', 'stop_now', 'disconnect'] as const
export type RelayCommand = (typeof relayCommands)[number]

/**
 * The command that a session has after another one is requested. A disconnect is final; a stop that is repeated skips
 * the stop grace. Everything else replaces the command before it.
 */
export function commandAfter(current: RelayCommand, requested: RelayCommand): RelayCommand {
  if (current === 'disconnect') return 'disconnect'
  const isStopping = current === 'stop' || current === 'stop_now'
  return requested === 'stop' && isStopping ? 'stop_now' : requested
}

/** Time limits in seconds. They are fixed when the session starts. */
export interface RelaySessionSettings {
  readonly provisionTimeoutSeconds: number
  /** Silence for this long means that the relay's health is lost. */
  readonly healthTimeoutSeconds: number
  /** Grace after lost health. */
  readonly graceSeconds: number
  /**
   * The longest grace after lost health while the instance is replaced. Absent in sessions of earlier versions, and 0
   * where instances are not replaced.
   */
  readonly replacementSeconds?: number
  readonly stopGraceSeconds: number
  /** After this time a session is stopped when it is idle, and after 1.5 times as long in any case. */
  readonly maxSessionSeconds: number
}

/** The state of a relay session workflow. It is plain JSON and survives continue-as-new. */
export interface RelaySessionState {
  readonly sessionId: string
  readonly region: string
  readonly settings: RelaySessionSettings
  readonly createdAt: Millis
  readonly state: RelayState
  readonly reason: RelayReason
  /** The number of transitions so far. */
  readonly version: number
  /** The number of the last command that was carried out. */
  readonly commandSeq: number
  readonly instanceId: string | null
  /** The instance that was lost before its first report, and is being replaced. */
  readonly lostInstanceId?: string | null
  /** In a grace for lost health: the instance that is to take over with its first report. */
  readonly replacementId?: string | null
  /** When provisioning or grace ends, by Temporal's clock; null in the other states. */
  readonly deadlineAt: Millis | null
  /** When the time of a trial is used up, by Temporal's clock; absent or null for a relay of a plan. */
  readonly trialEndsAt?: Millis | null
}

export type RelaySessionEvent =
  | { readonly type: 'command'; readonly seq: number; readonly command: RelayCommand; readonly initiator: Initiator }
  /** An operator's request. `requestId` identifies it on the session's row, where it can be withdrawn. */
  | { readonly type: 'transition'; readonly to: RelayState; readonly requestId: string }
  /** An instance was created and bound to the session. */
  | { readonly type: 'bound'; readonly instanceId: string }
  /** An instance was created that takes over with its first report. */
  | { readonly type: 'replacement_created'; readonly instanceId: string }
  | { readonly type: 'ready' }
  /**
   * The first report of a warm instance is expected within milliseconds. Writing its transition waits for it for a
   * moment.
   */
  | { readonly type: 'report_expected' }
  | { readonly type: 'provision_failed'; readonly detail?: ProvisioningDetail | null }
  | { readonly type: 'health_lost' }
  | { readonly type: 'health_restored' }
  /** The bound instance was proved to be gone. */
  | { readonly type: 'relay_gone'; readonly instanceId: string }
  /** The bound instance is lost, and too many before it were replaced lately. */
  | { readonly type: 'relay_unstable' }
  /** The provider no longer has this instance. */
  | { readonly type: 'instance_gone'; readonly instanceId: string }
  /** The session's row may differ from the workflow's state. */
  | { readonly type: 'wake'; readonly isRequested?: boolean }
  | { readonly type: 'idle' }
  | { readonly type: 'deadline' }
  | { readonly type: 'max_duration' }
  /** The time of the account's trial may be used up. */
  | { readonly type: 'trial_ended' }
  /** The workflow was cancelled, for example in the Temporal UI. */
  | { readonly type: 'cancelled' }

/**
 * The transitions that an event causes, none when it changes nothing. Each of them is legal after the one before it.
 */
export function decideTransitions(
  session: RelaySessionState,
  event: RelaySessionEvent,
  now: Millis,
): readonly Transition[] {
  switch (event.type) {
    case 'command':
      return event.seq > session.commandSeq ? execute(session, event.command, event.initiator) : []
    case 'transition':
      return transitionTo(session, event.to)
    case 'ready':
    case 'report_expected':
      return session.state === 'provisioning' ? [{ to: 'active', reason: 'relay_ready', initiator: 'relay' }] : []
    case 'provision_failed':
      return session.state === 'provisioning'
        ? [{ to: 'stopped', reason: 'provision_failed', initiator: 'system' }]
        : []
    case 'health_lost':
      return loseHealth(session)
    case 'relay_gone':
      return session.instanceId === event.instanceId ? loseHealth(session) : []
    case 'relay_unstable':
      return session.state === 'active'
        ? [...loseHealth(session), { to: 'stopped', reason: 'force_disconnected', initiator: 'system' }]
        : []
    case 'health_restored':
      return isInGraceFor(session, 'health_lost')
        ? [{ to: 'active', reason: 'health_restored', initiator: 'relay' }]
        : []
    case 'instance_gone':
      return session.instanceId === event.instanceId ? loseInstance(session) : []
    case 'idle':
      // Only an active session can be idle. One in grace ends by its own deadline.
      return session.state === 'active' && now >= maxDurationAt(session)
        ? end(session, 'force_disconnected', 'timer')
        : []
    case 'max_duration':
      return now >= latestEndAt(session) ? end(session, 'force_disconnected', 'timer') : []
    case 'trial_ended':
      return session.trialEndsAt != null && now >= session.trialEndsAt
        ? end(session, 'force_disconnected', 'timer')
        : []
    case 'deadline':
      return session.deadlineAt !== null && now >= session.deadlineAt ? endByDeadline(session) : []
    case 'cancelled':
      return end(session, 'force_disconnected', 'operator')
    case 'bound':
    case 'replacement_created':
    case 'wake':
      return []
  }
}

const loseHealth = ({ state }: RelaySessionState): readonly Transition[] =>
  state === 'active' ? [{ to: 'grace', reason: 'health_lost', initiator: 'system' }] : []

/** What the transitions of an event leave to say. */
export function detailOf(event: RelaySessionEvent): SessionDetail | null {
  switch (event.type) {
    case 'provision_failed':
      return event.detail ?? null
    case 'health_lost':
      return 'relay_silent'
    case 'relay_gone':
    case 'instance_gone':
      return 'relay_gone'
    case 'relay_unstable':
    case 'trial_ended':
      return event.type
    default:
      return null
  }
}

function execute(session: RelaySessionState, command: RelayCommand, initiator: Initiator): readonly Transition[] {
  switch (command) {
    case 'run':
      return isInGraceFor(session, 'stop_requested') ? [{ to: 'active', reason: 'start_requested', initiator }] : []
    case 'stop':
      // Grace of either kind is not extended by a stop: the session ends at once.
      return session.state === 'active'
        ? [{ to: 'grace', reason: 'stop_requested', initiator }]
        : end(session, 'stop_requested', initiator)
    case 'stop_now':
      return end(session, 'stop_requested', initiator)
    case 'disconnect':
      return end(session, 'force_disconnected', initiator)
  }
}

/** The shortest legal way to `stopped`: an active session passes through grace. */
function end(
  { state }: RelaySessionState,
  reason: 'stop_requested' | 'force_disconnected',
  initiator: Initiator,
): readonly Transition[] {
  const stop = { to: 'stopped', reason, initiator } as const
  if (state === 'stopped') return []
  return state === 'active' ? [{ to: 'grace', reason, initiator }, stop] : [stop]
}

/** The way to `stopped` of a live session whose workflow cannot go on. */
export function transitionsOfFailedWorkflow(state: RelayState): readonly Transition[] {
  const initiator = 'system'
  if (state === 'provisioning') return [{ to: 'stopped', reason: 'provision_failed', initiator }]
  if (state === 'grace') return [{ to: 'stopped', reason: 'grace_elapsed', initiator }]
  if (state === 'stopped') return []
  return [
    { to: 'grace', reason: 'health_lost', initiator },
    { to: 'stopped', reason: 'force_disconnected', initiator },
  ]
}

export const isReplaceable = ({ settings }: Pick<RelaySessionState, 'settings'>): boolean =>
  (settings.replacementSeconds ?? 0) > 0

/** Whether another instance may take over while the session waits for the lost one. */
export const isAwaitingReplacement = (session: RelaySessionState): boolean =>
  isReplaceable(session) && isInGraceFor(session, 'health_lost')

/** An instance that is gone can't come back. Where it is not replaced, a grace would only delay the next start. */
function loseInstance(session: RelaySessionState): readonly Transition[] {
  if (isReplaceable(session)) return loseHealth(session)
  const stop = { to: 'stopped', reason: 'force_disconnected', initiator: 'system' } as const
  if (session.state === 'active') return [{ to: 'grace', reason: 'health_lost', initiator: 'system' }, stop]
  return isInGraceFor(session, 'health_lost') ? [stop] : []
}

function endByDeadline({ state }: RelaySessionState): readonly Transition[] {
  if (state === 'provisioning') return [{ to: 'stopped', reason: 'provision_timeout', initiator: 'timer' }]
  return state === 'grace' ? [{ to: 'stopped', reason: 'grace_elapsed', initiator: 'timer' }] : []
}

/** The transition to a state that an operator names, none when it is not legal. */
function transitionTo(session: RelaySessionState, to: RelayState): readonly Transition[] {
  if (!isLegalTransition(session.state, to)) return []
  const initiator = 'operator'
  if (to === 'stopped') return [{ to, reason: 'force_disconnected', initiator }]
  if (to === 'grace') return [{ to, reason: 'stop_requested', initiator }]
  if (session.state === 'provisioning') return [{ to: 'active', reason: 'relay_ready', initiator }]
  const reason = isInGraceFor(session, 'health_lost') ? 'health_restored' : 'start_requested'
  return [{ to: 'active', reason, initiator }]
}

export const isInGraceFor = (
  { state, reason }: Pick<RelaySessionState, 'state' | 'reason'>,
  cause: RelayReason,
): boolean => state === 'grace' && reason === cause

/**
 * A session is idle when no stream has come in for this long: ten minutes, so that a break in a stream does not end it.
 */
export const idleSecondsMin = (maxSessionSeconds: number): number => Math.min(600, maxSessionSeconds / 6)

/** From this time on a session is stopped as soon as it is idle. */
export const maxDurationAt = ({ createdAt, settings }: RelaySessionState): Millis =>
  createdAt + settings.maxSessionSeconds * 1000

/** The longest duration of a session, even while it is in use. */
export const longestSeconds = (maxSessionSeconds: number): number => maxSessionSeconds * 1.5

/**
 * The age from which users are warned: an hour before a session may be stopped as idle, or less if sessions are short.
 */
export const endingSoonSeconds = (maxSessionSeconds: number): number =>
  maxSessionSeconds - (maxSessionSeconds < 2 * 3600 ? longestSeconds(maxSessionSeconds) / 4 : 3600)

/** Whether a live session is so close to the time from which it may be stopped, or past it, that its user is warned. */
export const isEndingSoon = (createdAt: Millis, maxSessionSeconds: number, now: Millis): boolean =>
  now >= createdAt + endingSoonSeconds(maxSessionSeconds) * 1000

/** At this time a session is stopped even while it is in use. */
export const latestEndAt = ({ createdAt, settings }: RelaySessionState): Millis =>
  createdAt + longestSeconds(settings.maxSessionSeconds) * 1000

/** The length of the grace that a transition begins, in seconds; null when it leads to another state. */
export function graceSecondsAfter({ settings }: RelaySessionState, transition: Transition): number | null {
  if (transition.to !== 'grace') return null
  if (transition.reason !== 'health_lost') return settings.stopGraceSeconds
  return Math.max(settings.graceSeconds, settings.replacementSeconds ?? 0)
}
