/** Inspects workflow executions on the Temporal server. */
import type { WorkflowHandle } from '@temporalio/client'
import { eventually } from './relays.ts'

/**
 * Resolves with the execution when all its signals, updates and activities are done, which is after its writes are
 * visible.
 */
export const untilAtRest = (handle: WorkflowHandle) =>
  eventually(
    () => handle.describe(),
    ({ raw }) => !raw.pendingWorkflowTask && !raw.pendingActivities?.length,
  )
