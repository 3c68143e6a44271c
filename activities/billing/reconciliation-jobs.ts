/** The hourly job that reconciles the stored subscriptions with the billing provider's list. */
import type { Database } from '../../db/connection.ts'
import type { Logger } from '../../platform/log.ts'
import type { BillingProvider } from '../../providers/billing/provider.ts'
import type { Job } from '../worker/jobs.ts'
import type { WorkerMetrics } from '../worker/metrics.ts'
import { reconcile } from './reconciliation.ts'

interface Deps {
  readonly sql: Database
  readonly provider: BillingProvider
  readonly log: Logger
  readonly metrics: Pick<WorkerMetrics, 'countDifferences'>
}

export const billingReconciliationJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'reconcile_billing',
    everySeconds: 3600,
    runSecondsMax: 3600,
    run: async () => {
      const { differences } = await reconcile(deps)
      deps.metrics.countDifferences(differences)
    },
  },
]
