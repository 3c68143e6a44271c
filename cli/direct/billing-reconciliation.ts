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
import { type OutputOptions, silentLog, withWorkerAccess } from './worker-access.ts'

/** Throws `SvcError` when differences wait for the next run. @param dryRun stores nothing. */
export async function reconcileBilling(dryRun: boolean, { json }: OutputOptions): Promise<void> {
  const { result, provider } = await withWorkerAccess(async ({ config, sql }) => {
    const { provider } = await createBilling(config, createBillingDeps(sql))
    const result = await reconcile({ sql, provider, log: silentLog, dryRun })
    return { result, provider: provider.name }
  })
  if (json) printJson(presentReconciliation(result, provider, dryRun))
  else printReconciliation(result, provider, dryRun)
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

function printReconciliation(result: Reconciliation, provider: string, dryRun: boolean): void {
  const { listed, differences, corrected, unsettled, unknown } = result
  printTable(columnsOf(dryRun), differences)
  printRemark(`Subscriptions at ${provider}: ${listed}. Different from the stored ones: ${differences.length}.`)
  if (unknown.length > 0) printRemark(`Without a known account: ${unknown.join(', ')}.`)
  if (unsettled > 0)
    printRemark(`Not settled by reconciliation: ${unsettled}. Compare them with the provider's dashboard.`)
  printRemark(dryRun ? 'Dry run: nothing was changed.' : `Corrected: ${corrected}.`)
}

const presentReconciliation = (result: Reconciliation, provider: string, dryRun: boolean): object => ({
  provider,
  dry_run: dryRun,
  listed: result.listed,
  corrected: result.corrected,
  held: result.held,
  unsettled: result.unsettled,
  differences: result.differences.map(({ subscriptionId, kind, userId, ...rest }) => ({
    subscription_id: subscriptionId,
    kind,
    user_id: userId,
    ...rest,
  })),
  subscriptions_without_account: result.unknown,
})
