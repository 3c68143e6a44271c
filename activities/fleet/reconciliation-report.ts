/** The output of `npm run fleet -- reconcile`. */
import { observationSeconds } from '../../domain/fleet/orphan-sweep.ts'
import { formatTable } from '../text-table.ts'
import type { FleetReconciliation, Outcome, RegionReconciliation, ReportedDifference } from './reconciliation.ts'
import { formatElsewhere } from './status.ts'

interface Run {
  readonly dryRun: boolean
}

const header = ['region', 'instance', 'kind', 'session', 'since', 'outcome']

export function formatReconciliation({ regions, elsewhere }: FleetReconciliation, { dryRun }: Run): string {
  const rows = regions.flatMap(({ region, differences }) =>
    differences.map((one) => [
      region,
      one.instanceId,
      one.kind,
      one.sessionId ?? 'none',
      formatSince(one),
      formatOutcome(one, dryRun),
    ]),
  )
  return [
    ...regions.map(formatRegion),
    ...(rows.length > 0 ? ['', ...formatTable([header, ...rows])] : []),
    '',
    ...formatAdvice(regions, dryRun),
    ...(elsewhere.length > 0 ? [formatElsewhere(elsewhere)] : []),
    '',
  ].join('\n')
}

function formatRegion({ region, listed, seconds, differences, conflict, error }: RegionReconciliation): string {
  const time = `${seconds.toFixed(1)} s`
  if (error !== null) return `${region}: failed after ${time}: ${error}`
  if (conflict !== null) return `${region}: not swept: ${conflict}`
  return `${region}: ${listed} listed, ${differences.length} different from the stored ones, in ${time}`
}

function formatSince({ kind, since }: ReportedDifference): string {
  const isObserved = kind === 'orphan' || kind === 'foreign'
  if (!since) return 'first observation'
  return isObserved ? `${since.toISOString()}, observed before` : since.toISOString()
}

function formatOutcome({ outcome, error, keptUntil }: ReportedDifference, dryRun: boolean): string {
  const texts: Readonly<Record<Outcome, string>> = {
    destroyed: 'destroyed',
    due: dryRun ? 'would be destroyed' : 'left for the next run',
    waiting: 'waits for a second observation',
    earlier_epoch: `kept until ${keptUntil?.toISOString()}, since it may carry a stream of an earlier epoch`,
    blocked: 'not destroyed, since the region is blocked',
    failed: `could not be destroyed: ${error}`,
    gone: dryRun ? 'would count as gone' : 'counts as gone',
    starting: 'may be starting',
    kept: 'kept',
  }
  return texts[outcome]
}

function formatAdvice(regions: readonly RegionReconciliation[], dryRun: boolean): string[] {
  const count = (outcome: Outcome) =>
    regions.flatMap(({ differences }) => differences).filter((one) => one.outcome === outcome).length
  const [waiting, failed] = [count('waiting'), count('failed')]
  const blocked = regions
    .filter(({ isBlocked, conflict }) => isBlocked && conflict === null)
    .map(({ region }) => region)
  const unlisted = regions.filter(({ error }) => error !== null).map(({ region }) => region)
  return [
    ...(unlisted.length > 0 ? [`Not compared: ${unlisted.join(', ')}. Find out why with: npm run fleet -- check`] : []),
    ...(blocked.length > 0
      ? [
          `Blocked: ${blocked.join(', ')}. Most instances there seem to have no owner. Check that the database is the right one and is not restored from a backup. If the instances are really to be destroyed: npm run fleet -- reconcile --force`,
        ]
      : []),
    ...(failed > 0 ? [`Could not be destroyed: ${failed}. The job sweep_orphans tries again every minute.`] : []),
    ...(waiting > 0
      ? [
          `Waiting for a second observation: ${waiting}. Run this again ${observationSeconds} s after ${dryRun ? 'a run without --dry-run' : 'this run'}, or leave it to the job sweep_orphans, which runs every minute.`,
        ]
      : []),
    dryRun ? 'Dry run: nothing was changed.' : `Destroyed: ${count('destroyed')}.`,
  ]
}

/** The comparison as JSON, with the names of the operators' API. */
export const presentReconciliation = ({ regions, elsewhere }: FleetReconciliation, { dryRun }: Run): object => ({
  dry_run: dryRun,
  regions: regions.map((one) => ({
    region: one.region,
    listed: one.listed,
    seconds: one.seconds,
    blocked: one.isBlocked,
    conflict: one.conflict,
    error: one.error,
    differences: one.differences.map((difference) => ({
      instance_id: difference.instanceId,
      kind: difference.kind,
      session_id: difference.sessionId,
      since: difference.since?.toISOString() ?? null,
      outcome: difference.outcome,
      error: difference.error,
    })),
  })),
  regions_not_configured: elsewhere,
})
