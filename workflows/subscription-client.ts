/** How the API and the jobs reach an account's subscription workflow. Every call may be repeated. */
import type { Client } from '@temporalio/client'
import * as messages from './messages.ts'
import { createRunningWorkflows, isWorkflowNotFound } from './running-workflows-client.ts'
import { PlanStatusAttribute, UserIdAttribute } from './search-attributes.ts'
import { type FindMaskedEmail, listDetails } from './static-details-client.ts'

export interface SubscriptionWorkflows {
  /**
   * Makes the account's workflow read its inbox; starts it when it does not run. Resolves when Temporal has accepted
   * the signal.
   */
  wake(userId: string): Promise<void>
  /** The workflow's snapshot; undefined when it does not run, as for an account on the free tier. */
  snapshot(userId: string): Promise<messages.SubscriptionSnapshot | undefined>
  /** The plan status of each account whose workflow runs, by the account's id. Lags some seconds behind. */
  listRunning(): Promise<Map<string, string | undefined>>
  /** Whether the account's workflow runs, without any lag. */
  isRunning(userId: string): Promise<boolean>
}

interface Options {
  readonly taskQueue: string
  /** The longest time that one call may take, in milliseconds. */
  readonly callMillisMax: number
  /** The address of an account as operators see it in the Temporal UI. */
  readonly findMaskedEmail: FindMaskedEmail
  /** See {@link messages.SubscriptionInput}. */
  readonly historyEventsMax?: number
}

export function createSubscriptionWorkflows(
  client: Client,
  { taskQueue, callMillisMax, findMaskedEmail, historyEventsMax }: Options,
): SubscriptionWorkflows {
  const withDeadline = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)
  const running = createRunningWorkflows(client, {
    workflowType: messages.subscriptionWorkflow,
    taskQueue,
    callMillisMax,
  })
  return {
    wake: async (userId) => {
      const staticDetails = listDetails([
        ['account', userId],
        ['address', await findMaskedEmail(userId)],
      ])
      await withDeadline(() =>
        client.workflow.signalWithStart(messages.subscriptionWorkflow, {
          taskQueue,
          workflowId: messages.subscriptionWorkflowId(userId),
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
          workflowTaskTimeout: '5s',
          args: [{ userId, ...(historyEventsMax === undefined ? {} : { historyEventsMax }) }],
          signal: messages.wakeSubscription,
          signalArgs: [],
          typedSearchAttributes: [{ key: UserIdAttribute, value: userId }],
          staticSummary: `Subscription of account ${userId}`,
          staticDetails,
        }),
      )
    },
    snapshot: async (userId) => {
      const handle = client.workflow.getHandle(messages.subscriptionWorkflowId(userId))
      try {
        return (await withDeadline(() => handle.query(messages.subscriptionSnapshot))) ?? undefined
      } catch (error) {
        if (isWorkflowNotFound(error)) return undefined
        throw error
      }
    },
    listRunning: async () => {
      const planStatuses = new Map<string, string | undefined>()
      for await (const { workflowId, typedSearchAttributes } of running.list())
        planStatuses.set(messages.userIdOf(workflowId), typedSearchAttributes.get(PlanStatusAttribute))
      return planStatuses
    },
    isRunning: (userId) => running.isRunning(messages.subscriptionWorkflowId(userId)),
  }
}
