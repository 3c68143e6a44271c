/** Access to relay session workflows for the API and the jobs. Every call may be repeated. */
import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowUpdateFailedError } from '@temporalio/client'
import { ApplicationFailure, type SignalDefinition } from '@temporalio/common'
import type {
  Initiator,
  RelayCommand,
  RelayReason,
  RelaySessionSettings,
  RelaySessionState,
  RelayState,
} from '../domain/relay/session.ts'
import * as messages from './messages.ts'
import { createRunningWorkflows, isWorkflowNotFound } from './running-workflows-client.ts'
import { ConnectionAttribute, RegionAttribute, RelayStateAttribute, UserIdAttribute } from './search-attributes.ts'
import { type FindMaskedEmail, listDetails } from './static-details-client.ts'

/** The part of a session's row that is needed to start its workflow and to deliver its last command. */
export interface RelaySessionAddress {
  readonly id: string
  readonly userId: string
  readonly connectionId: string
  readonly region: string
  readonly createdAt: Date
  /** Null before one is bound. */
  readonly instanceId: string | null
  readonly command: RelayCommand
  readonly commandSeq: number
  readonly commandInitiator: Initiator
  readonly commandDeliveredSeq: number
  /** The masked address of the account, where the caller has read it; it is looked up otherwise. */
  readonly maskedEmail?: string | null
}

/** The part of a session's row that is needed to restart its workflow. */
export interface RestartableSession extends RelaySessionAddress {
  readonly state: RelayState
  readonly reason: RelayReason
  readonly version: number
  readonly graceEndsAt: Date | null
}

/** `ended`: no workflow runs, so the session is stopped. `refused`: the transition is not legal. */
export type TransitionAnswer =
  | { readonly type: 'answered'; readonly session: messages.RelaySessionSnapshot }
  | { readonly type: 'ended' | 'refused' }

export interface RelaySessionWorkflows {
  /**
   * Starts the workflow if it has never run, and sends the session's last command. Resolves when the workflow has
   * carried it out. False when no workflow runs: it has ended, or it was lost and has to be restarted.
   */
  deliver(session: RelaySessionAddress): Promise<boolean>
  /** Starts a new execution for a live session whose execution was lost. Does nothing while one is running. */
  restart(session: RestartableSession): Promise<void>
  /**
   * The state that each running workflow shows, by session id. Temporal's visibility store lags some seconds behind.
   */
  listRunning(): Promise<Map<string, string | undefined>>
  /** Whether the session's workflow runs, without any lag. */
  isRunning(sessionId: string): Promise<boolean>
  /** @param requestId the id of the operator's request on the session's row. */
  transition(sessionId: string, to: RelayState, requestId: string): Promise<TransitionAnswer>
  /** Undefined when no workflow was ever started for the session. */
  snapshot(sessionId: string): Promise<messages.RelaySessionSnapshot | undefined>
  /** Each signal resolves with whether a workflow received it. */
  ready(sessionId: string): Promise<boolean>
  healthLost(sessionId: string): Promise<boolean>
  healthRestored(sessionId: string): Promise<boolean>
  idle(sessionId: string): Promise<boolean>
  relayGone(sessionId: string, instanceId: string): Promise<boolean>
  instanceGone(sessionId: string, instanceId: string): Promise<boolean>
  wake(sessionId: string): Promise<boolean>
}

interface Options {
  readonly taskQueue: string
  readonly settings: RelaySessionSettings
  /** The longest time that one call may take, in milliseconds. */
  readonly callMillisMax: number
  /** The address of an account as operators see it in the Temporal UI. */
  readonly findMaskedEmail: FindMaskedEmail
}

export function createRelaySessionWorkflows(
  client: Client,
  { taskQueue, settings: configured, callMillisMax, findMaskedEmail }: Options,
): RelaySessionWorkflows {
  const settings = settingsOf(configured)
  const running = createRunningWorkflows(client, {
    workflowType: messages.relaySessionWorkflow,
    taskQueue,
    callMillisMax,
  })
  const handle = (sessionId: string) => client.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
  const withDeadline = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)

  const start = async (session: RelaySessionAddress, resumeState?: RelaySessionState): Promise<void> => {
    const staticDetails = listDetails([
      ['connection', session.connectionId],
      ['region', session.region],
      ['account', session.userId],
      ['address', session.maskedEmail === undefined ? await findMaskedEmail(session.userId) : session.maskedEmail],
    ])
    try {
      await withDeadline(() =>
        client.workflow.start(messages.relaySessionWorkflow, {
          taskQueue,
          workflowId: messages.relaySessionWorkflowId(session.id),
          workflowIdConflictPolicy: 'USE_EXISTING',
          // A restart replaces an execution of any outcome, because the session's row is live.
          workflowIdReusePolicy: resumeState ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
          workflowTaskTimeout: '5s',
          args: [{ ...inputOf(session, settings), ...(resumeState ? { resumeState, isRestart: true } : {}) }],
          typedSearchAttributes: [
            { key: UserIdAttribute, value: session.userId },
            { key: RegionAttribute, value: session.region },
            { key: ConnectionAttribute, value: session.connectionId },
            { key: RelayStateAttribute, value: resumeState?.state ?? 'provisioning' },
          ],
          staticSummary: `Relay in ${session.region} for connection ${session.connectionId}`,
          staticDetails,
        }),
      )
    } catch (error) {
      // The workflow has run and ended, so the session is stopped.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    }
  }

  const signal = <Args extends unknown[]>(sessionId: string, definition: SignalDefinition<Args>, ...args: Args) =>
    withDeadline(() => isReceived(handle(sessionId).signal(definition, ...args)))

  return {
    deliver: async (session) => {
      if (session.commandDeliveredSeq === 0) await start(session)
      if (session.commandSeq === 1) return true
      const { commandSeq: seq, command, commandInitiator: initiator } = session
      return withDeadline(() =>
        isReceived(
          handle(session.id).executeUpdate(messages.command, {
            args: [{ seq, command, initiator }],
            updateId: `command-${seq}`,
          }),
        ),
      )
    },
    restart: (session) => start(session, resumeStateOf(session, settings)),
    listRunning: async () => {
      const states = new Map<string, string | undefined>()
      for await (const { workflowId, typedSearchAttributes } of running.list())
        if (messages.isRelaySessionWorkflowId(workflowId))
          states.set(messages.sessionIdOf(workflowId), typedSearchAttributes.get(RelayStateAttribute))
      return states
    },
    isRunning: (sessionId) => running.isRunning(messages.relaySessionWorkflowId(sessionId)),
    transition: async (sessionId, to, requestId) => {
      try {
        const session = await withDeadline(() =>
          handle(sessionId).executeUpdate(messages.transition, { args: [{ to, requestId }], updateId: requestId }),
        )
        return { type: 'answered', session }
      } catch (error) {
        if (isWorkflowNotFound(error)) return { type: 'ended' }
        if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure)
          return { type: 'refused' }
        throw error
      }
    },
    snapshot: async (sessionId) => {
      try {
        return await withDeadline(() => handle(sessionId).query(messages.snapshot))
      } catch (error) {
        if (isWorkflowNotFound(error)) return undefined
        throw error
      }
    },
    ready: (sessionId) => signal(sessionId, messages.ready),
    healthLost: (sessionId) => signal(sessionId, messages.healthLost),
    healthRestored: (sessionId) => signal(sessionId, messages.healthRestored),
    idle: (sessionId) => signal(sessionId, messages.idle),
    relayGone: (sessionId, instanceId) => signal(sessionId, messages.relayGone, { instanceId }),
    instanceGone: (sessionId, instanceId) => signal(sessionId, messages.instanceGone, { instanceId }),
    wake: (sessionId) => signal(sessionId, messages.wake),
  }
}

/**
 * Only the named settings, since a history must not contain others of the same object, such as the passphrase of the
 * relays.
 */
const settingsOf = ({
  provisionTimeoutSeconds,
  healthTimeoutSeconds,
  graceSeconds,
  replacementSeconds = 0,
  stopGraceSeconds,
  maxSessionSeconds,
}: RelaySessionSettings): RelaySessionSettings => ({
  provisionTimeoutSeconds,
  healthTimeoutSeconds,
  graceSeconds,
  replacementSeconds,
  stopGraceSeconds,
  maxSessionSeconds,
})

const inputOf = (session: RelaySessionAddress, settings: RelaySessionSettings): messages.RelaySessionInput => ({
  sessionId: session.id,
  userId: session.userId,
  connectionId: session.connectionId,
  region: session.region,
  createdAt: session.createdAt.getTime(),
  settings,
  ...(session.instanceId === null ? {} : { instanceId: session.instanceId }),
})

const resumeStateOf = (session: RestartableSession, settings: RelaySessionSettings): RelaySessionState => ({
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

/** False when no workflow was there to receive the message. */
async function isReceived(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (isWorkflowNotFound(error)) return false
    throw error
  }
}
