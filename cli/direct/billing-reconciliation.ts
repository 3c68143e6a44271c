/** `svc billing reconcile`: compares all subscriptions with the billing provider's list, and prints the differences. */
import {
  type ReconciledDifference,
  type Reconciliation,
  type ReconciliationOutcome,
  reconcile,
} from '../../activities/billing/reconciliation.ts'
import { createBillingDeps } from '../../db/billing/subscriptions.ts'
import { createBilling } from '../../providers/billing/billing.ts'
import { exitCodes, SvcError } from '../svc/exit-codes.ts'
import { type Column, printJson, printRemark, printTable } from '../svc/output.ts'
import { silentLog, withWorkerAccess } from './worker-access.ts'

interface Run {
  readonly provider: string
  /** Stores nothing. */
  readonly dryRun: boolean
}

interface Options {
  readonly dryRun: boolean
  readonly json?: true
}

/** Throws `SvcError` when differences wait for the next run. */
export async function reconcileBilling({ dryRun, json }: Options): Promise<void> {
  const { result, run } = await withWorkerAccess(async ({ config, sql }) => {
    const { provider } = await createBilling(config, createBillingDeps(sql))
    const result = await reconcile({ sql, provider, log: silentLog, dryRun })
    return { result, run: { provider: provider.name, dryRun } }
  })
  if (json) printJson(presentReconciliation(result, run))
  else printReconciliation(result, run)
  if (result.held > 0)
    throw new SvcError(
      exitCodes.waiting,
      `Waiting for the next run: ${result.held}. So many differences are more likely a mistake than lost webhooks.`,
    )
}

const columnsOf = (dryRun: boolean): readonly Column<ReconciledDifference>[] => {
  const outcomes: Readonly<Record<ReconciliationOutcome, string>> = {
    corrected: dryRun ? 'would be corrected' : 'corrected',
    held: 'waits for the next run',
    repeated: 'already recorded',
    unsettled: 'not settled',
  }
  return [
    { header: 'SUBSCRIPTION', value: (one) => one.subscriptionId },
    { header: 'KIND', value: (one) => one.kind },
    { header: 'ACCOUNT', value: (one) => one.userId },
    { header: 'STORED', value: (one) => one.stored },
    { header: 'AT THE PROVIDER', value: (one) => one.listed },
    { header: 'OUTCOME', value: (one) => outcomes[one.outcome] },
  ]
}

function printReconciliation(result: Reconciliation, { provider, dryRun }: Run): void {
  const { listed, differences, corrected, unsettled, unknown } = result
  printTable(columnsOf(dryRun), differences)
  printRemark(`Subscriptions at ${provider}: ${listed}. Different from the stored ones: ${differences.length}.`)
  if (unknown.length > 0) printRemark(`Without a known account: ${unknown.join(', ')}.`)
  if (unsettled > 0)
    printRemark(`Not settled by reconciliation: ${unsettled}. Compare them with the provider's dashboard.`)
  printRemark(dryRun ? 'Dry run: nothing was changed.' : `Corrected: ${corrected}.`)
}

const presentReconciliation = (
  { listed, differences, corrected, held, unsettled, unknown }: Reconciliation,
  { provider, dryRun }: Run,
): object => ({
  provider,
  dry_run: dryRun,
  listed,
  corrected,
  held,
  unsettled,
  differences: differences.map((one) => ({
    subscription_id: one.subscriptionId,
    kind: one.kind,
    user_id: one.userId,
    stored: one.stored,
    listed: one.listed,
    outcome: one.outcome,
  })),
  subscriptions_without_account: unknown,
})
