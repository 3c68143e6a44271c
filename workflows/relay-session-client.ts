/** How the api and the jobs reach a relay session's actor. Every call may be repeated. */
import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowUpdateFailedError } from '@temporalio/client'
import { ApplicationFailure, defineSearchAttributeKey, type SignalDefinition } from '@temporalio/common'
import * as messages from './messages.ts'
import type { Actor, Command, Reason, Session, Settings, State } from './relay-session-state.ts'
import { createRunningWorkflows, isWorkflowNotFound } from './running-workflows-client.ts'

/** What must be known of a session to reach its actor, and the last command in its inbox. */
export interface AddressedSession {
  readonly id: string
  readonly userId: string
  readonly connectionId: string
  readonly region: string
  readonly createdAt: Date
  readonly command: Command
  readonly commandSeq: number
  readonly commandActor: Actor
  readonly commandDeliveredSeq: number
}

/** What a restart needs besides. */
export interface LostSession extends AddressedSession {
  readonly state: State
  readonly reason: Reason
  readonly version: number
  readonly instanceId: string | null
  readonly graceEndsAt: Date | null
}

/** `ended`: the actor is no more, so the session is stopped. `refused`: the move is none of the five from where it is. */
export type ActorAnswer =
  | { readonly type: 'answered'; readonly session: messages.RelaySessionSnapshot }
  | { readonly type: 'ended' | 'refused' }

export interface RelaySessionActors {
  /**
   * Starts the actor if it has not been, and hands it the session's last command. Resolves when it has acted on it, with
   * whether there was one: an actor that ended has nothing left to be told, but one that was lost has to be revived.
   */
  deliver(session: AddressedSession): Promise<boolean>
  /** Starts a new execution of a live session's workflow, whose own was lost. Nothing happens while one is running. */
  restart(session: LostSession): Promise<void>
  /** All sessions with a running workflow, and the state that each shows. Lags some seconds behind. */
  listRunning(): Promise<Map<string, string | undefined>>
  /** Whether the session's workflow runs, without any lag. */
  isRunning(sessionId: string): Promise<boolean>
  /** @param requestId of the operator's request on the session's row. */
  transition(sessionId: string, to: State, requestId: string): Promise<ActorAnswer>
  snapshot(sessionId: string): Promise<messages.RelaySessionSnapshot | undefined>
  /** The signals resolve with whether there was an actor to hear them. */
  ready(sessionId: string): Promise<boolean>
  healthLost(sessionId: string): Promise<boolean>
  healthRestored(sessionId: string): Promise<boolean>
  idle(sessionId: string): Promise<boolean>
  instanceGone(sessionId: string, instanceId: string): Promise<boolean>
  wake(sessionId: string): Promise<boolean>
}

interface Options {
  readonly taskQueue: string
  readonly settings: Settings
  /** How long one call may take, in milliseconds. */
  readonly callMillisMax: number
}

const UserId = defineSearchAttributeKey('UserId', 'KEYWORD')
const Region = defineSearchAttributeKey('Region', 'KEYWORD')
const RelayState = defineSearchAttributeKey('RelayState', 'KEYWORD')

export function createRelaySessionActors(
  client: Client,
  { taskQueue, settings, callMillisMax }: Options,
): RelaySessionActors {
  const running = createRunningWorkflows(client, {
    workflowType: messages.relaySessionWorkflow,
    taskQueue,
    callMillisMax,
  })
  const handle = (sessionId: string) => client.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
  const within = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)

  const start = async (session: AddressedSession, restartedFrom?: Session): Promise<void> => {
    try {
      await within(() =>
        client.workflow.start(messages.relaySessionWorkflow, {
          taskQueue,
          workflowId: messages.relaySessionWorkflowId(session.id),
          workflowIdConflictPolicy: 'USE_EXISTING',
          // A restart follows whatever became of the execution before: the session's row is live.
          workflowIdReusePolicy: restartedFrom ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
          workflowTaskTimeout: '5s',
          args: [
            { ...inputOf(session, settings), ...(restartedFrom ? { carried: restartedFrom, isRestart: true } : {}) },
          ],
          typedSearchAttributes: [
            { key: UserId, value: session.userId },
            { key: Region, value: session.region },
            { key: RelayState, value: restartedFrom?.state ?? 'provisioning' },
          ],
          staticSummary: `Relay in ${session.region} for connection ${session.connectionId}`,
        }),
      )
    } catch (error) {
      // It ran and ended: whatever it was to be told is done.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    }
  }

  const tell = <Args extends unknown[]>(sessionId: string, signal: SignalDefinition<Args>, ...args: Args) =>
    within(() => hasActor(handle(sessionId).signal(signal, ...args)))

  return {
    deliver: async (session) => {
      if (session.commandDeliveredSeq === 0) await start(session)
      if (session.commandSeq === 1) return true
      const { commandSeq: seq, command, commandActor: actor } = session
      return within(() =>
        hasActor(
          handle(session.id).executeUpdate(messages.command, {
            args: [{ seq, command, actor }],
            updateId: `command-${seq}`,
          }),
        ),
      )
    },
    restart: (session) => start(session, carriedOf(session, settings)),
    listRunning: async () => {
      const states = new Map<string, string | undefined>()
      for await (const { workflowId, typedSearchAttributes } of running.list())
        states.set(messages.sessionIdOf(workflowId), typedSearchAttributes.get(RelayState))
      return states
    },
    isRunning: (sessionId) => running.isRunning(messages.relaySessionWorkflowId(sessionId)),
    transition: async (sessionId, to, requestId) => {
      try {
        const asked = { args: [{ to, requestId }] as [messages.TransitionRequest], updateId: requestId }
        return {
          type: 'answered',
          session: await within(() => handle(sessionId).executeUpdate(messages.transition, asked)),
        }
      } catch (error) {
        if (isWorkflowNotFound(error)) return { type: 'ended' }
        if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure)
          return { type: 'refused' }
        throw error
      }
    },
    snapshot: async (sessionId) => {
      try {
        return await within(() => handle(sessionId).query(messages.snapshot))
      } catch (error) {
        if (isWorkflowNotFound(error)) return undefined
        throw error
      }
    },
    ready: (sessionId) => tell(sessionId, messages.ready),
    healthLost: (sessionId) => tell(sessionId, messages.healthLost),
    healthRestored: (sessionId) => tell(sessionId, messages.healthRestored),
    idle: (sessionId) => tell(sessionId, messages.idle),
    instanceGone: (sessionId, instanceId) => tell(sessionId, messages.instanceGone, { instanceId }),
    wake: (sessionId) => tell(sessionId, messages.wake),
  }
}

const inputOf = (session: AddressedSession, settings: Settings): messages.RelaySessionInput => ({
  sessionId: session.id,
  userId: session.userId,
  connectionId: session.connectionId,
  region: session.region,
  createdAt: session.createdAt.getTime(),
  settings,
})

const carriedOf = (session: LostSession, settings: Settings): Session => ({
  sessionId: session.id,
  region: session.region,
  settings,
  createdAt: session.createdAt.getTime(),
  state: session.state,
  reason: session.reason,
  version: session.version,
  commandSeq: Math.max(1, session.commandDeliveredSeq),
  instanceId: session.instanceId,
  deadlineAt:
    session.state === 'provisioning'
      ? Date.now() + settings.provisionTimeoutSeconds * 1000
      : (session.graceEndsAt?.getTime() ?? null),
})

async function hasActor(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (isWorkflowNotFound(error)) return false
    throw error
  }
}
