/** How the api and the jobs reach an account's subscription actor. Every call may be repeated. */
import { type Client, isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client'
import { defineSearchAttributeKey } from '@temporalio/common'
import * as messages from './messages.ts'

export interface SubscriptionActors {
  /** Wakes the account's actor to look into its inbox; starts it when it has none. Resolves once Temporal has it. */
  tell(userId: string): Promise<void>
  /** The actor's own view; nothing when there is none, as for an account that is plainly free. */
  standing(userId: string): Promise<messages.SubscriptionSnapshot | undefined>
  /** The accounts whose workflow runs. Lags some seconds behind. */
  listRunning(): Promise<Set<string>>
  /** Whether the account's workflow runs, without any lag. */
  isRunning(userId: string): Promise<boolean>
}

interface Options {
  readonly taskQueue: string
  /** How long one call may take, in milliseconds. */
  readonly callMillisMax: number
  /** See {@link messages.SubscriptionInput}. */
  readonly historyEventsMax?: number
}

const UserId = defineSearchAttributeKey('UserId', 'KEYWORD')

export function createSubscriptionActors(
  client: Client,
  { taskQueue, callMillisMax, historyEventsMax }: Options,
): SubscriptionActors {
  const within = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)
  return {
    tell: async (userId) => {
      await within(() =>
        client.workflow.signalWithStart(messages.subscriptionWorkflow, {
          taskQueue,
          workflowId: messages.subscriptionWorkflowId(userId),
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
          workflowTaskTimeout: '5s',
          args: [{ userId, ...(historyEventsMax === undefined ? {} : { historyEventsMax }) }],
          signal: messages.news,
          signalArgs: [],
          typedSearchAttributes: [{ key: UserId, value: userId }],
          staticSummary: `Subscription of account ${userId}`,
        }),
      )
    },
    standing: async (userId) => {
      const handle = client.workflow.getHandle(messages.subscriptionWorkflowId(userId))
      try {
        return (await within(() => handle.query(messages.standing))) ?? undefined
      } catch (error) {
        if (isUnknown(error)) return undefined
        throw error
      }
    },
    listRunning: async () => {
      const query = `WorkflowType = '${messages.subscriptionWorkflow}' AND TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
      const userIds = new Set<string>()
      for await (const { workflowId } of client.workflow.list({ query, pageSize: 1000 }))
        userIds.add(messages.userIdOf(workflowId))
      return userIds
    },
    isRunning: async (userId) => {
      try {
        const handle = client.workflow.getHandle(messages.subscriptionWorkflowId(userId))
        return (await within(() => handle.describe())).status.name === 'RUNNING'
      } catch (error) {
        if (isUnknown(error)) return false
        throw error
      }
    },
  }
}

const grpcNotFound = 5

const isUnknown = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError || (isGrpcServiceError(error) && error.code === grpcNotFound)
