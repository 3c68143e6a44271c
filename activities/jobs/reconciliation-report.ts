/** A round of reconciliation as a person reads it. */
import type { Change, Reconciliation } from './billing-reconciliation.ts'

interface Run {
  readonly provider: string
  readonly dryRun: boolean
}

const columns = ['subscription', 'kind', 'account', 'ours', 'theirs', 'what happens'] as const

export function reportOf(
  { listed, changes, applied, held, unsettled, unknown }: Reconciliation,
  { provider, dryRun }: Run,
): string {
  const happens: Readonly<Record<Change['became'], string>> = {
    told: dryRun ? 'would be told' : 'is told',
    held: 'waits for the next round',
    repeated: 'was told before',
    unsettled: 'can not be settled',
  }
  const rows = changes.map((one) => [
    one.subscriptionId,
    one.kind,
    one.userId,
    one.ours,
    one.theirs,
    happens[one.became],
  ])
  const told = dryRun ? 'A dry run: nothing is told.' : `Told to their actors: ${applied}.`
  return [
    `Subscriptions at ${provider}: ${listed}. Different from ours: ${changes.length}.`,
    ...(rows.length > 0 ? ['', ...table([[...columns], ...rows]), ''] : []),
    ...(unknown.length > 0 ? [`Nobody is known to have: ${unknown.join(', ')}.`] : []),
    ...(held > 0
      ? [`Waiting for the next round: ${held}. So many at once are rather a mistake than lost webhooks.`]
      : []),
    ...(unsettled > 0
      ? [`Not to be settled by reconciliation: ${unsettled}. Compare them with the provider's dashboard.`]
      : []),
    told,
    '',
  ].join('\n')
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
