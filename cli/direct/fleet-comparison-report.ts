/** `svc fleet compare`, and its output. */
import { observationSeconds } from '../../domain/fleet/orphan-sweep.ts'
import { exitCodes, SvcError } from '../svc/exit-codes.ts'
import { type Column, formatTime, printHeading, printJson, printRemark, printTable } from '../svc/output.ts'
import {
  type ComparisonOptions,
  compareFleet,
  type FleetComparison,
  type Outcome,
  type RegionComparison,
  type ReportedDifference,
} from './fleet-comparison.ts'
import { describeElsewhere } from './fleet-status.ts'
import { type OutputOptions, withWorkerAccess } from './worker-access.ts'

const regionColumns: readonly Column<RegionComparison>[] = [
  { header: 'REGION', value: ({ region }) => region },
  { header: 'LISTED', value: (comparison) => (isCompared(comparison) ? comparison.listed : null) },
  { header: 'DIFFERENT', value: (comparison) => (isCompared(comparison) ? comparison.differences.length : null) },
  { header: 'SECONDS', value: ({ seconds }) => seconds.toFixed(1) },
  { header: 'RESULT', value: formatResult },
]

const isCompared = ({ error, conflict }: RegionComparison): boolean => error === null && conflict === null

function formatResult({ error, conflict, blocked }: RegionComparison): string {
  if (error !== null) return `failed: ${error}`
  if (conflict !== null) return `not swept: ${conflict}`
  return blocked ? 'blocked' : 'compared'
}

type RegionDifference = ReportedDifference & { readonly region: string }

/** Addresses are listed only where one differs. */
const differenceColumns = (dryRun: boolean, hasAddresses: boolean): readonly Column<RegionDifference>[] => [
  { header: 'REGION', value: ({ region }) => region },
  { header: 'INSTANCE', value: ({ instance_id }) => instance_id },
  ...(hasAddresses ? [{ header: 'ADDRESS', value: ({ address }: RegionDifference) => address }] : []),
  { header: 'KIND', value: ({ kind }) => kind },
  { header: 'SESSION', value: ({ session_id }) => session_id },
  { header: 'SINCE', value: formatSince },
  { header: 'OUTCOME', value: (difference) => formatOutcome(difference, dryRun) },
]

/** Throws `SvcError` when something needs attention, or waits for a second observation. */
export async function compare(options: ComparisonOptions, { json }: OutputOptions): Promise<void> {
  const result = await withWorkerAccess((access) => compareFleet(access, options))
  const { regions, regions_not_configured: elsewhere } = result
  const differences = regions.flatMap(({ region, differences }) =>
    differences.map((difference) => ({ ...difference, region })),
  )
  if (json) printJson(presentComparison(result, options))
  else {
    printTable(regionColumns, regions)
    if (differences.length > 0) {
      printHeading('Differences')
      const hasAddresses = differences.some(({ address }) => address !== null)
      printTable(differenceColumns(options.dryRun, hasAddresses), differences)
    }
    if (elsewhere.length > 0) printRemark(describeElsewhere(elsewhere))
    const destroyed = differences.filter(({ outcome }) => outcome === 'destroyed').length
    printRemark(options.dryRun ? 'Dry run: nothing was changed.' : `Destroyed: ${destroyed}.`)
  }
  const [failures, waiting] = [listFailures(result), describeWaiting(differences, options)]
  if (failures.length > 0) throw new SvcError(exitCodes.failed, [...failures, waiting].join('\n').trimEnd())
  if (waiting) throw new SvcError(exitCodes.waiting, waiting)
}

function listFailures({ regions }: FleetComparison): string[] {
  const namesOf = (isMeant: (comparison: RegionComparison) => boolean) =>
    regions
      .filter(isMeant)
      .map(({ region }) => region)
      .join(', ')
  const unlisted = namesOf(({ error }) => error !== null)
  const conflicting = namesOf(({ conflict }) => conflict !== null)
  const blocked = namesOf((comparison) => comparison.blocked && comparison.conflict === null)
  const failed = regions.flatMap(({ differences }) => differences).filter(({ outcome }) => outcome === 'failed').length
  return [
    unlisted !== '' && `Not compared: ${unlisted}. Find out why with: svc fleet check`,
    conflicting !== '' && `Not swept: ${conflicting}. Find out what to do with: svc fleet check`,
    blocked !== '' &&
      `Blocked: ${blocked}. Most instances there seem to have no owner. Check that the database is the right one and is not restored from a backup. If the instances are really to be destroyed: svc fleet compare --force`,
    failed > 0 && `Could not be destroyed: ${failed}. The job sweep_orphans tries again every minute.`,
  ].filter((line) => line !== false)
}

function describeWaiting(differences: readonly ReportedDifference[], { dryRun }: ComparisonOptions): string {
  const waiting = differences.filter(({ outcome }) => outcome === 'waiting').length
  if (waiting === 0) return ''
  return `Waiting for a second observation: ${waiting}. Run this again ${observationSeconds} s after ${dryRun ? 'a run without --dry-run' : 'this run'}, or leave it to the job sweep_orphans, which runs every minute.`
}

function formatSince({ kind, since }: ReportedDifference): string {
  const isObserved = kind === 'orphan' || kind === 'foreign'
  if (!since) return 'first observation'
  return `${formatTime(since)}${isObserved ? ', observed before' : ''}`
}

function formatOutcome({ outcome, error, keptUntil }: ReportedDifference, dryRun: boolean): string {
  const texts: Readonly<Record<Outcome, string>> = {
    destroyed: 'destroyed',
    due: dryRun ? 'would be destroyed' : 'left for the next run',
    waiting: 'waits for a second observation',
    earlier_epoch: `kept until ${formatTime(keptUntil)}, since it may carry a stream of an earlier epoch`,
    blocked: 'not destroyed, since the region is blocked',
    failed: `could not be destroyed: ${error}`,
    gone: dryRun ? 'would count as gone' : 'counts as gone',
    starting: 'may be starting',
    kept: 'kept',
  }
  return texts[outcome]
}

/** The comparison as JSON. */
const presentComparison = ({ regions, ...rest }: FleetComparison, { dryRun }: ComparisonOptions): object => ({
  dry_run: dryRun,
  regions: regions.map(({ differences, ...region }) => ({
    ...region,
    differences: differences.map(({ keptUntil: _, ...difference }) => difference),
  })),
  ...rest,
})
