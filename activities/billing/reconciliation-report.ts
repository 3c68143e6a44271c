/** The output of `npm run reconcile`. */
import { formatTable } from '../text-table.ts'
import type { Reconciliation, ReconciliationOutcome } from './reconciliation.ts'

interface Run {
  readonly provider: string
  readonly dryRun: boolean
}

const header = ['subscription', 'kind', 'account', 'stored', 'at the provider', 'outcome']

export function formatReport(
  { listed, differences, corrected, held, unsettled, unknown }: Reconciliation,
  { provider, dryRun }: Run,
): string {
  const outcomes: Readonly<Record<ReconciliationOutcome, string>> = {
    corrected: dryRun ? 'would be corrected' : 'corrected',
    held: 'waits for the next run',
    repeated: 'already recorded',
    unsettled: 'not settled',
  }
  const rows = differences.map((one) => [
    one.subscriptionId,
    one.kind,
    one.userId,
    one.stored,
    one.listed,
    outcomes[one.outcome],
  ])
  return [
    `Subscriptions at ${provider}: ${listed}. Different from the stored ones: ${differences.length}.`,
    ...(rows.length > 0 ? ['', ...formatTable([header, ...rows]), ''] : []),
    ...(unknown.length > 0 ? [`Without a known account: ${unknown.join(', ')}.`] : []),
    ...(held > 0
      ? [`Waiting for the next run: ${held}. So many differences are more likely a mistake than lost webhooks.`]
      : []),
    ...(unsettled > 0
      ? [`Not settled by reconciliation: ${unsettled}. Compare them with the provider's dashboard.`]
      : []),
    dryRun ? 'Dry run: nothing was changed.' : `Corrected: ${corrected}.`,
    '',
  ].join('\n')
}
