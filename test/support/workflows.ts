/** Workflow executions as the Temporal server shows them. */
import type { WorkflowHandle } from '@temporalio/client'
import { eventually } from './relays.ts'

/** The execution once all that it was sent is handled and its activities are done: what it wrote is seen a little earlier. */
export const untilAtRest = (handle: WorkflowHandle) =>
  eventually(
    () => handle.describe(),
    ({ raw }) => !raw.pendingWorkflowTask && !raw.pendingActivities?.length,
  )
