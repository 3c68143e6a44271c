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
    { header: 'SUBSCRIPTION', value: ({ subscriptionId }) => subscriptionId },
    { header: 'KIND', value: ({ kind }) => kind },
    { header: 'ACCOUNT', value: ({ userId }) => userId },
    { header: 'STORED', value: ({ stored }) => stored },
    { header: 'AT THE PROVIDER', value: ({ listed }) => listed },
    { header: 'OUTCOME', value: ({ outcome }) => outcomes[outcome] },
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
  differences: differences.map((difference) => ({
    subscription_id: difference.subscriptionId,
    kind: difference.kind,
    user_id: difference.userId,
    stored: difference.stored,
    listed: difference.listed,
    outcome: difference.outcome,
  })),
  subscriptions_without_account: unknown,
})
