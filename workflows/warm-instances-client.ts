/** Access to the workflows of warm instances for the API and the jobs. Every call may be repeated. */
import type { Client } from '@temporalio/client'
import * as messages from './messages.ts'
import { isWorkflowNotFound } from './running-workflows-client.ts'
import { RegionAttribute } from './search-attributes.ts'
import { listDetails } from './static-details-client.ts'

export interface WarmInstancesWorkflows {
  /** Makes the workflow of a region compare its warm instances with the configured number. Starts it when none runs. */
  wake(region: string): Promise<void>
  /** Undefined when no workflow was ever started for the region. */
  snapshot(region: string): Promise<messages.WarmInstancesSnapshot | undefined>
}

interface Options {
  readonly taskQueue: string
  /** The longest time that one call may take, in milliseconds. */
  readonly callMillisMax: number
}

export function createWarmInstancesWorkflows(
  client: Client,
  { taskQueue, callMillisMax }: Options,
): WarmInstancesWorkflows {
  const withDeadline = <Value>(call: () => Promise<Value>) => client.withDeadline(Date.now() + callMillisMax, call)
  return {
    wake: async (region) => {
      await withDeadline(() =>
        client.workflow.signalWithStart(messages.warmInstancesWorkflow, {
          taskQueue,
          workflowId: messages.warmInstancesWorkflowId(region),
          workflowTaskTimeout: '5s',
          args: [{ region }],
          signal: messages.wakeWarmInstances,
          signalArgs: [],
          typedSearchAttributes: [{ key: RegionAttribute, value: region }],
          staticSummary: `Warm instances in ${region}`,
          staticDetails: listDetails([['region', region]]),
        }),
      )
    },
    snapshot: async (region) => {
      try {
        const handle = client.workflow.getHandle(messages.warmInstancesWorkflowId(region))
        return await withDeadline(() => handle.query(messages.warmInstancesSnapshot))
      } catch (error) {
        if (isWorkflowNotFound(error)) return undefined
        throw error
      }
    },
  }
}
