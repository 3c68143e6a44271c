/** `npm run build`: builds the workflow bundle ahead of time, for a container image. */
import { createLog } from '../../platform/log.ts'
import { workflowBundlePath } from './workflow-bundle.ts'

process.stdout.write(`${await workflowBundlePath(createLog('build', 'info'))}\n`)
