/** How the api and the jobs reach a relay session's actor. Every call may be repeated. */
import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client'
import { ApplicationFailure, defineSearchAttributeKey } from '@temporalio/common'
import * as messages from './messages.ts'
import type { Actor, Command, Settings, State } from './relay-session-state.ts'

/** What must be known of a session to reach its actor, and the last command in its inbox. */
export interface AddressedSession {
  readonly id: string
  readonly user_id: string
  readonly connection_id: string
  readonly region: string
  readonly created_at: Date
  readonly command: Command
  readonly command_seq: number
  readonly command_actor: Actor
  readonly command_delivered_seq: number
}

/** `ended`: the actor is no more, so the session is stopped. `refused`: the move is none of the five from where it is. */
export type ActorAnswer =
  | { readonly type: 'answered'; readonly session: messages.RelaySessionSnapshot }
  | { readonly type: 'ended' | 'refused' }

export interface RelaySessionActors {
  /** Starts the actor if it has not been, and hands it the session's last command. Resolves when it has acted on it. */
  deliver(session: AddressedSession): Promise<void>
  transition(sessionId: string, to: State): Promise<ActorAnswer>
  snapshot(sessionId: string): Promise<messages.RelaySessionSnapshot | undefined>
  ready(sessionId: string): Promise<void>
  healthLost(sessionId: string): Promise<void>
  healthRestored(sessionId: string): Promise<void>
  idle(sessionId: string): Promise<void>
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
  const handle = (sessionId: string) => client.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
  const within = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)

  const start = async (session: AddressedSession): Promise<void> => {
    try {
      await within(() =>
        client.workflow.start(messages.relaySessionWorkflow, {
          taskQueue,
          workflowId: messages.relaySessionWorkflowId(session.id),
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          args: [inputOf(session, settings)],
          typedSearchAttributes: [
            { key: UserId, value: session.user_id },
            { key: Region, value: session.region },
            { key: RelayState, value: 'provisioning' },
          ],
          staticSummary: `Relay in ${session.region} for connection ${session.connection_id}`,
        }),
      )
    } catch (error) {
      // It ran and ended: whatever it was to be told is done.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    }
  }

  const tell = (sessionId: string, signal: typeof messages.ready) =>
    within(() => ignoringEnded(handle(sessionId).signal(signal)))

  return {
    deliver: async (session) => {
      if (session.command_delivered_seq === 0) await start(session)
      if (session.command_seq === 1) return
      const { command_seq: seq, command, command_actor: actor } = session
      await within(() =>
        ignoringEnded(
          handle(session.id).executeUpdate(messages.command, {
            args: [{ seq, command, actor }],
            updateId: `command-${seq}`,
          }),
        ),
      )
    },
    transition: async (sessionId, to) => {
      try {
        return {
          type: 'answered',
          session: await within(() => handle(sessionId).executeUpdate(messages.transition, { args: [{ to }] })),
        }
      } catch (error) {
        if (hasEnded(error)) return { type: 'ended' }
        if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure)
          return { type: 'refused' }
        throw error
      }
    },
    snapshot: async (sessionId) => {
      try {
        return await within(() => handle(sessionId).query(messages.snapshot))
      } catch (error) {
        if (hasEnded(error)) return undefined
        throw error
      }
    },
    ready: (sessionId) => tell(sessionId, messages.ready),
    healthLost: (sessionId) => tell(sessionId, messages.healthLost),
    healthRestored: (sessionId) => tell(sessionId, messages.healthRestored),
    idle: (sessionId) => tell(sessionId, messages.idle),
  }
}

const inputOf = (session: AddressedSession, settings: Settings): messages.RelaySessionInput => ({
  sessionId: session.id,
  userId: session.user_id,
  connectionId: session.connection_id,
  region: session.region,
  createdAt: session.created_at.getTime(),
  settings,
})

const grpcNotFound = 5

const hasEnded = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError || (isGrpcServiceError(error) && error.code === grpcNotFound)

async function ignoringEnded(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (!hasEnded(error)) throw error
  }
}
