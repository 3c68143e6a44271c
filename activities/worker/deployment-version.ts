/**
 * Worker Deployment Versioning of Temporal: which version of the deployment a worker is, and the workflow code that
 * goes with it.
 */
import type { WorkerOptions } from '@temporalio/worker'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { workflowBundlePath } from './workflow-bundle.ts'

/**
 * A worker without a version gets the tasks of all workflows, and its workflow code declares no versioning behavior.
 */
export async function versionedWorkflows(
  { workerVersion }: Config,
  log: Logger,
  isTraced: boolean,
): Promise<Pick<WorkerOptions, 'workflowBundle' | 'workerDeploymentOptions'>> {
  if (workerVersion === null) return { workflowBundle: { codePath: await workflowBundlePath(log, { isTraced }) } }
  return {
    workflowBundle: { codePath: await workflowBundlePath(log, { registry: 'versioned-registry', isTraced }) },
    workerDeploymentOptions: {
      useWorkerVersioning: true,
      version: workerVersion,
      defaultVersioningBehavior: 'AUTO_UPGRADE',
    },
  }
}
