/**
 * `npm run reconcile -- [--dry-run]`: compares all subscriptions with the billing provider's list, and applies the differences.
 */
import { runWithWorkerEnvironment } from './worker-environment.ts'

try {
  process.exitCode = await runWithWorkerEnvironment('activities/billing/reconcile.ts', process.argv.slice(2))
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
