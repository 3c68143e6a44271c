/** `npm run build`: builds the workflow bundles ahead of time, for a container image. */
import { createLog } from '../../platform/log.ts'
import { workflowBundlePath, workflowRegistries } from './workflow-bundle.ts'

const log = createLog('build', 'info')
for (const registry of workflowRegistries)
  for (const isTraced of [false, true])
    process.stdout.write(`${await workflowBundlePath(log, { registry, isTraced })}\n`)
