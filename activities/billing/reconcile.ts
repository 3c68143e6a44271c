/** `npm run reconcile`: reconciles once and prints the differences. The exit code is 2 if some wait for the next run. */
import { parseArgs } from 'node:util'
import { createBillingDeps } from '../../db/billing/subscriptions.ts'
import { connectPostgres } from '../../db/connection.ts'
import { readConfig } from '../../platform/config/config.ts'
import { createLog } from '../../platform/log.ts'
import { createBilling } from '../../providers/billing/billing.ts'
import { type Reconciliation, reconcile } from './reconciliation.ts'
import { formatReport } from './reconciliation-report.ts'

async function run(): Promise<Reconciliation> {
  const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } })
  const config = readConfig()
  const sql = connectPostgres(config.database.url, 2)
  try {
    const { provider } = await createBilling(config, createBillingDeps(sql))
    const dryRun = values['dry-run']
    const result = await reconcile({ sql, provider, log: createLog('reconcile', 'silent'), dryRun })
    process.stdout.write(formatReport(result, { provider: provider.name, dryRun }))
    return result
  } finally {
    await sql.end({ timeout: 5 })
  }
}

try {
  const { held } = await run()
  process.exitCode = held > 0 ? 2 : 0
} catch (error) {
  process.stderr.write(`Reconciliation failed: ${(error as Error).message}\n`)
  process.exitCode = 1
}
