/** `npm run fleet -- reconcile`: compares the instances of all regions with the rows, and sweeps them. */
import type { Database } from '../../db/connection.ts'
import {
  compareInstances,
  countInstancesElsewhere,
  type InstanceDifference,
} from '../../db/fleet/instance-comparison.ts'
import { planSweep } from '../../domain/fleet/orphan-sweep.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelayInstance } from '../../providers/relay/provider.ts'
import { findFleetProblem } from './fleet-names.ts'
import { listRegion, type SweepDeps, type SweepOutcome, sweepRegion } from './orphan-sweep.ts'
import type { RelayProviders } from './relay-providers.ts'

/** What happens to the instance of a difference. */
export type Outcome =
  | 'destroyed'
  | 'due'
  | 'waiting'
  | 'earlier_epoch'
  | 'blocked'
  | 'failed'
  | 'gone'
  | 'starting'
  | 'kept'

export interface ReportedDifference extends InstanceDifference {
  readonly outcome: Outcome
  /** Of a failure. */
  readonly error: string | null
}

export interface RegionReconciliation {
  readonly region: string
  readonly listed: number
  readonly seconds: number
  readonly differences: readonly ReportedDifference[]
  readonly isBlocked: boolean
  /** Why nothing was compared: instances of this control plane and of others could be mistaken for each other. */
  readonly conflict: string | null
  /** The region could not be listed or compared. */
  readonly error: string | null
}

export interface FleetReconciliation {
  readonly regions: readonly RegionReconciliation[]
  readonly elsewhere: readonly { readonly region: string; readonly count: number }[]
}

export interface ReconcileOptions {
  /** Changes nothing, neither at a provider nor in Postgres. */
  readonly dryRun: boolean
  readonly force: boolean
}

interface Deps {
  readonly config: Pick<Config, 'fleet' | 'regions'>
  readonly sql: Database
  readonly log: Logger
  readonly providers: RelayProviders
}

export async function reconcileFleet(
  { config, sql, log, providers }: Deps,
  options: ReconcileOptions,
): Promise<FleetReconciliation> {
  const names = config.regions.map(({ region }) => region)
  const regions = await Promise.all(
    names.flatMap((region) => {
      const provider = providers.get(region)
      return provider ? [reconcileRegion({ sql, log, provider, region }, config.fleet.name, options)] : []
    }),
  )
  return { regions, elsewhere: await countInstancesElsewhere(sql, names) }
}

async function reconcileRegion(
  deps: SweepDeps,
  fleetName: string | undefined,
  options: ReconcileOptions,
): Promise<RegionReconciliation> {
  const { sql, provider, region } = deps
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1000
  const nothing = { region, listed: 0, differences: [], isBlocked: false, conflict: null, error: null }
  try {
    const problem = await findFleetProblem({ fleetName, sql, provider })
    if (problem?.blocksSweep) return { ...nothing, isBlocked: true, conflict: problem.text, seconds: seconds() }
    const listed = await listRegion(deps)
    // Before the sweep, which changes what is compared.
    const differences = await compareInstances(sql, { region, listed, listLagSeconds: provider.listLagSeconds })
    const sweep = options.dryRun ? foresee(differences, listed, options) : await sweepRegion(deps, listed, options)
    return {
      region,
      listed: listed.length,
      differences: differences.map((one) => withOutcome(one, sweep, options)),
      isBlocked: sweep.isBlocked,
      conflict: null,
      error: null,
      seconds: seconds(),
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { ...nothing, error: message, seconds: seconds() }
  }
}

/** What a sweep would do. */
function foresee(
  differences: readonly InstanceDifference[],
  listed: readonly RelayInstance[],
  { force }: ReconcileOptions,
): SweepOutcome {
  const unowned = differences
    .filter(({ kind }) => kind !== 'missing' && kind !== 'unbound')
    .map((one) => ({ ...one, isRetired: one.kind === 'retired' }))
  const { destroy, waiting, kept, isBlocked } = planSweep(unowned, listed.length, { force })
  return { destroyed: destroy, failed: new Map(), waiting, kept, isBlocked }
}

function withOutcome(
  difference: InstanceDifference,
  { destroyed, failed, waiting, kept, isBlocked }: SweepOutcome,
  { dryRun }: ReconcileOptions,
): ReportedDifference {
  const { instanceId, kind, isGone } = difference
  const result = (outcome: Outcome, error: string | null = null) => ({ ...difference, outcome, error })
  if (kind === 'missing') return result(isGone ? 'gone' : 'starting')
  if (kind === 'unbound') return result('kept')
  const error = failed.get(instanceId)
  if (error) return result('failed', error.message)
  if (destroyed.includes(instanceId)) return result(dryRun ? 'due' : 'destroyed')
  if (kept.includes(instanceId)) return result('earlier_epoch')
  // An instance that got its session meanwhile, or whose destruction did not start in time, is due in the next run.
  return result(waiting.includes(instanceId) ? 'waiting' : isBlocked ? 'blocked' : 'due')
}

/** 1 when something needs attention, 2 when something waits for a second observation, otherwise 0. */
export function exitCodeOf({ regions }: FleetReconciliation): number {
  const differences = regions.flatMap((one) => one.differences)
  if (regions.some(({ error, isBlocked }) => error !== null || isBlocked)) return 1
  if (differences.some(({ outcome }) => outcome === 'failed')) return 1
  return differences.some(({ outcome }) => outcome === 'waiting') ? 2 : 0
}
