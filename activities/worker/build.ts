/** `npm run build`: makes the workflow bundle ahead of time, for an image. */
import { createLog } from '../../platform/log.ts'
import { workflowBundlePath } from './workflow-bundle.ts'

process.stdout.write(`${await workflowBundlePath(createLog('build', 'info'))}\n`)
