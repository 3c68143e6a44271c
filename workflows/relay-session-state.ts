/**
 * The relay session's rules, pure: five legal moves, what each event asks for, and which deadline comes next.
 * Time is an argument and nothing here knows of Temporal, so a property test can try them all.
 */

export type State = 'provisioning' | 'active' | 'grace' | 'stopped'

export type Reason =
  | 'relay_ready'
  | 'provision_failed'
  | 'provision_timeout'
  | 'health_lost'
  | 'health_restored'
  | 'start_requested'
  | 'stop_requested'
  | 'force_disconnected'
  | 'grace_elapsed'

export type Actor = 'user' | 'operator' | 'relay' | 'timer' | 'system'

/** Milliseconds since 1970, by the clock of whoever calls. */
export type Millis = number

/** What was last asked for. `run`: stay or come back. `stop`: end after the stop grace. The others end at once. */
export type Command = 'run' | 'stop' | 'stop_now' | 'disconnect'

export const states = ['provisioning', 'active', 'grace', 'stopped'] as const satisfies readonly State[]

/** The five legal moves, each with the reasons that may cause it. Postgres holds the same table and refuses any other. */
export const moves = {
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
} as const satisfies Record<State, Partial<Record<State, readonly Reason[]>>>

export interface Move {
  readonly to: State
  readonly reason: Reason
  readonly actor: Actor
}

export const isLegal = (from: State, to: State, reason?: Reason): boolean => {
  const reasons = (moves[from] as Partial<Record<State, readonly Reason[]>>)[to]
  return reasons !== undefined && (reason === undefined || reasons.includes(reason))
}

/** How long things may take, in seconds; fixed when the session starts. */
export interface Settings {
  readonly provisionTimeoutSeconds: number
  /** Silence that counts as lost health. */
  readonly healthTimeoutSeconds: number
  /** Grace after lost health. */
  readonly graceSeconds: number
  readonly stopGraceSeconds: number
  /** After this a session is stopped at its first idle moment, and after half as much again in any case. */
  readonly maxSessionSeconds: number
}

/** The actor's whole state: plain JSON, carried through continue-as-new. */
export interface Session {
  readonly sessionId: string
  readonly region: string
  readonly settings: Settings
  readonly createdAt: Millis
  readonly state: State
  readonly reason: Reason
  /** Counts the moves made. */
  readonly version: number
  /** The last command that was acted on. */
  readonly commandSeq: number
  readonly instanceId: string | null
  /** When provisioning or grace ends, by Temporal's clock; null in the other states. */
  readonly deadlineAt: Millis | null
}

export type Event =
  | { readonly type: 'command'; readonly seq: number; readonly command: Command; readonly actor: Actor }
  /** `requestId` names the operator's request on the session's row: one that was withdrawn there moves nothing. */
  | { readonly type: 'transition'; readonly to: State; readonly requestId: string }
  | { readonly type: 'bound'; readonly instanceId: string }
  | { readonly type: 'ready' }
  | { readonly type: 'provision_failed' }
  | { readonly type: 'health_lost' }
  | { readonly type: 'health_restored' }
  /** The provider no longer has this instance. */
  | { readonly type: 'instance_gone'; readonly instanceId: string }
  /** The session's row may differ from this state: compare them. */
  | { readonly type: 'wake' }
  | { readonly type: 'idle' }
  | { readonly type: 'deadline' }
  | { readonly type: 'longest' }
  | { readonly type: 'cancelled' }

/** The moves that an event asks for in the session's present state; none when it changes nothing. Every one is legal. */
export function decide(session: Session, event: Event, now: Millis): readonly Move[] {
  switch (event.type) {
    case 'command':
      return event.seq > session.commandSeq ? obey(session, event.command, event.actor) : []
    case 'transition':
      return transitionTo(session, event.to)
    case 'ready':
      return session.state === 'provisioning' ? [{ to: 'active', reason: 'relay_ready', actor: 'relay' }] : []
    case 'provision_failed':
      return session.state === 'provisioning' ? [{ to: 'stopped', reason: 'provision_failed', actor: 'system' }] : []
    case 'health_lost':
      return session.state === 'active' ? [{ to: 'grace', reason: 'health_lost', actor: 'system' }] : []
    case 'health_restored':
      return graceFor(session, 'health_lost') ? [{ to: 'active', reason: 'health_restored', actor: 'relay' }] : []
    case 'instance_gone':
      return session.instanceId === event.instanceId ? loseInstance(session) : []
    case 'idle':
      // Only an active session can be idle: one in grace ends by its own deadline.
      return session.state === 'active' && now >= longestAt(session) ? end(session, 'force_disconnected', 'timer') : []
    case 'longest':
      return now >= latestEndAt(session) ? end(session, 'force_disconnected', 'timer') : []
    case 'deadline':
      return session.deadlineAt !== null && now >= session.deadlineAt ? elapse(session) : []
    case 'cancelled':
      return end(session, 'force_disconnected', 'operator')
    case 'bound':
    case 'wake':
      return []
  }
}

/** A relay whose instance is gone cannot come back, so its grace would only delay the next start. */
function loseInstance(session: Session): readonly Move[] {
  const stop = { to: 'stopped', reason: 'force_disconnected', actor: 'system' } as const
  if (session.state === 'active') return [{ to: 'grace', reason: 'health_lost', actor: 'system' }, stop]
  return graceFor(session, 'health_lost') ? [stop] : []
}

function obey(session: Session, command: Command, actor: Actor): readonly Move[] {
  switch (command) {
    case 'run':
      return graceFor(session, 'stop_requested') ? [{ to: 'active', reason: 'start_requested', actor }] : []
    case 'stop':
      // A second stop, or one of a session whose relay is silent anyway, does not wait.
      return session.state === 'active'
        ? [{ to: 'grace', reason: 'stop_requested', actor }]
        : end(session, 'stop_requested', actor)
    case 'stop_now':
      return end(session, 'stop_requested', actor)
    case 'disconnect':
      return end(session, 'force_disconnected', actor)
  }
}

/** The shortest legal way to stopped: a running relay leaves through grace. */
function end({ state }: Session, reason: 'stop_requested' | 'force_disconnected', actor: Actor): readonly Move[] {
  const stop = { to: 'stopped', reason, actor } as const
  if (state === 'stopped') return []
  return state === 'active' ? [{ to: 'grace', reason, actor }, stop] : [stop]
}

function elapse({ state }: Session): readonly Move[] {
  if (state === 'provisioning') return [{ to: 'stopped', reason: 'provision_timeout', actor: 'timer' }]
  return state === 'grace' ? [{ to: 'stopped', reason: 'grace_elapsed', actor: 'timer' }] : []
}

/** One move that an operator names by its end; none when it is not among the five. */
function transitionTo(session: Session, to: State): readonly Move[] {
  if (!isLegal(session.state, to)) return []
  const actor = 'operator'
  if (to === 'stopped') return [{ to, reason: 'force_disconnected', actor }]
  if (to === 'grace') return [{ to, reason: 'stop_requested', actor }]
  if (session.state === 'provisioning') return [{ to: 'active', reason: 'relay_ready', actor }]
  return [{ to: 'active', reason: graceFor(session, 'health_lost') ? 'health_restored' : 'start_requested', actor }]
}

export const graceFor = ({ state, reason }: Pick<Session, 'state' | 'reason'>, cause: Reason): boolean =>
  state === 'grace' && reason === cause

export const longestAt = ({ createdAt, settings }: Session): Millis => createdAt + settings.maxSessionSeconds * 1000

export const latestEndAt = ({ createdAt, settings }: Session): Millis => createdAt + settings.maxSessionSeconds * 1500

/** How long the state that a move leads to lasts by itself, in seconds; null when it has no end of its own. */
export function lastsSeconds({ settings }: Session, move: Move): number | null {
  if (move.to !== 'grace') return null
  return move.reason === 'health_lost' ? settings.graceSeconds : settings.stopGraceSeconds
}
