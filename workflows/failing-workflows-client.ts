/**
 * Finds and ends workflows whose tasks fail again and again: a task may crash its worker, so no workflow may keep one
 * for ever.
 */
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import * as messages from './messages.ts'
import { isWorkflowNotFound } from './running-workflows-client.ts'

/**
 * Failures and timeouts of one workflow task after which its workflow is ended. The task of a crashed worker times out.
 */
const failuresMax = 3

export interface FailingWorkflow {
  readonly workflowId: string
  readonly runId: string
  readonly workflowType: string
}

export interface FailingWorkflows {
  /** All running workflows of the service. Temporal's visibility store lags some seconds behind. */
  listRunning(): Promise<FailingWorkflow[]>
  /** Whether the run's pending task has failed three times or more. */
  isFailing(workflow: FailingWorkflow): Promise<boolean>
  /** Terminates the run. Does nothing when it has ended. */
  end(workflow: FailingWorkflow): Promise<void>
  /**
   * Starts the workflow on a task queue that no worker polls, where it takes the signals that would start it again. An
   * operator terminates it once the cause is mended. Does nothing when it runs.
   */
  park(workflow: FailingWorkflow): Promise<void>
}

interface Options {
  readonly taskQueue: string
  /** The longest time that one call may take, in milliseconds. */
  readonly callMillisMax: number
}

export function createFailingWorkflows(client: Client, { taskQueue, callMillisMax }: Options): FailingWorkflows {
  const withDeadline = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)

  return {
    listRunning: async () => {
      const types = [messages.relaySessionWorkflow, messages.subscriptionWorkflow, messages.warmInstancesWorkflow]
      const names = types.map((type) => `'${type}'`).join(', ')
      const query = `WorkflowType IN (${names}) AND TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
      const running: FailingWorkflow[] = []
      for await (const { workflowId, runId, type } of client.workflow.list({ query, pageSize: 1000 }))
        running.push({ workflowId, runId, workflowType: type })
      return running
    },
    isFailing: async ({ workflowId, runId }) => {
      try {
        const { status, raw } = await withDeadline(() => client.workflow.getHandle(workflowId, runId).describe())
        return status.name === 'RUNNING' && (raw.pendingWorkflowTask?.attempt ?? 1) > failuresMax
      } catch (error) {
        if (isWorkflowNotFound(error)) return false
        throw error
      }
    },
    end: async ({ workflowId, runId }) => {
      try {
        const handle = client.workflow.getHandle(workflowId, runId)
        await withDeadline(() => handle.terminate('its workflow task failed again and again'))
      } catch (error) {
        if (!isWorkflowNotFound(error)) throw error
      }
    },
    park: async ({ workflowId, workflowType }) => {
      try {
        await withDeadline(() =>
          client.workflow.start(workflowType, {
            workflowId,
            taskQueue: `${taskQueue}-parked`,
            args: [inputOf(workflowId, workflowType)],
            staticSummary: 'Parked: its tasks failed again and again. Terminate it once the cause is mended',
          }),
        )
      } catch (error) {
        // A signal has started it again in between. It is found again when it still fails.
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
      }
    },
  }
}

const inputOf = (workflowId: string, workflowType: string): messages.SubscriptionInput | messages.WarmInstancesInput =>
  workflowType === messages.subscriptionWorkflow
    ? { userId: messages.userIdOf(workflowId) }
    : { region: messages.regionOf(workflowId) }
