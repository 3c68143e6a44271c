/** Which workflows of one type run: shared by the clients of relay sessions and of subscriptions. */
import { type Client, isGrpcServiceError, type WorkflowExecutionInfo, WorkflowNotFoundError } from '@temporalio/client'

interface RunningWorkflows {
  /** All running workflows of the type. Temporal's visibility store lags some seconds behind. */
  list(): AsyncIterable<WorkflowExecutionInfo>
  /** Whether the workflow runs, without any lag. */
  isRunning(workflowId: string): Promise<boolean>
}

interface Options {
  readonly workflowType: string
  readonly taskQueue: string
  /** The longest time that one call may take, in milliseconds. */
  readonly callMillisMax: number
}

export const createRunningWorkflows = (
  client: Client,
  { workflowType, taskQueue, callMillisMax }: Options,
): RunningWorkflows => ({
  list: () => {
    const query = `WorkflowType = '${workflowType}' AND TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
    return client.workflow.list({ query, pageSize: 1000 })
  },
  isRunning: async (workflowId) => {
    try {
      const handle = client.workflow.getHandle(workflowId)
      const { status } = await client.withDeadline(Date.now() + callMillisMax, () => handle.describe())
      return status.name === 'RUNNING'
    } catch (error) {
      if (isWorkflowNotFound(error)) return false
      throw error
    }
  },
})

const grpcNotFound = 5

/** Whether a call failed because the workflow has never run, or is closed. */
export const isWorkflowNotFound = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError || (isGrpcServiceError(error) && error.code === grpcNotFound)
