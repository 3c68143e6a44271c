/** Compares the instances of all regions with the rows, and sweeps them. */
import { findFleetProblem } from '../../activities/fleet/fleet-names.ts'
import {
  listAddresses,
  listRegion,
  type SweepDeps,
  type SweepOutcome,
  sweepAddresses,
  sweepRegion,
} from '../../activities/fleet/orphan-sweep.ts'
import { createRelayProviders } from '../../activities/fleet/relay-providers.ts'
import { beginEpoch } from '../../db/epochs.ts'
import {
  compareInstances,
  countInstancesElsewhere,
  type InstanceDifference,
} from '../../db/fleet/instance-comparison.ts'
import { type AddressDifference, compareAddresses } from '../../db/fleet/relay-addresses.ts'
import { planSweep } from '../../domain/fleet/orphan-sweep.ts'
import type { RelayInstance } from '../../providers/relay/provider.ts'
import { silentLog, type WorkerAccess } from './worker-access.ts'

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

/** With the names of the operators' API. */
export interface ReportedDifference {
  /** Of an address the instance that it leads or led to. */
  readonly instance_id: string | null
  /** A stable address; null for an instance. */
  readonly address: string | null
  readonly kind: InstanceDifference['kind'] | AddressDifference['kind']
  readonly session_id: string | null
  readonly since: Date | null
  readonly outcome: Outcome
  /** Of a failure. */
  readonly error: string | null
  /** Only for the table. */
  readonly keptUntil: Date | null
}

export interface RegionComparison {
  readonly region: string
  readonly listed: number
  readonly seconds: number
  readonly blocked: boolean
  /** Why nothing was compared: instances of this control plane and of others could be mistaken for each other. */
  readonly conflict: string | null
  /** The region could not be listed or compared. */
  readonly error: string | null
  readonly differences: readonly ReportedDifference[]
}

export type FleetComparison = Awaited<ReturnType<typeof compareFleet>>

export interface ComparisonOptions {
  /** Changes nothing, neither at a provider nor in Postgres. */
  readonly dryRun: boolean
  readonly force: boolean
}

export async function compareFleet({ config, sql }: WorkerAccess, options: ComparisonOptions) {
  const providers = await createRelayProviders(config, silentLog)
  // It may be the first sweep after a restore.
  if (!options.dryRun) await beginEpoch(sql, config.fleet.epoch)
  const names = config.regions.map(({ region }) => region)
  const regions = await Promise.all(
    names.flatMap((region) => {
      const provider = providers.get(region)
      return provider ? [compareRegion({ sql, log: silentLog, provider, region }, config.fleet.name, options)] : []
    }),
  )
  return { regions, regions_not_configured: await countInstancesElsewhere(sql, names) }
}

async function compareRegion(
  deps: SweepDeps,
  fleetName: string | undefined,
  options: ComparisonOptions,
): Promise<RegionComparison> {
  const { sql, provider, region } = deps
  const startedAt = performance.now()
  const report = (values: Partial<RegionComparison>): RegionComparison => ({
    region,
    listed: 0,
    seconds: (performance.now() - startedAt) / 1000,
    blocked: false,
    conflict: null,
    error: null,
    differences: [],
    ...values,
  })
  try {
    const problem = await findFleetProblem({ fleetName, sql, provider })
    if (problem?.blocksSweep) return report({ blocked: true, conflict: problem.text })
    const listed = await listRegion(deps)
    // Before the sweep, which changes what is compared.
    const differences = await compareInstances(sql, { region, listed, listLagSeconds: provider.listLagSeconds })
    const sweep = options.dryRun ? foresee(differences, listed, options) : await sweepRegion(deps, listed, options)
    const addresses = await listAddresses(deps)
    const addressDifferences = await compareAddresses(sql, { region, listed: addresses })
    if (!options.dryRun) await sweepAddresses(deps, addresses)
    return report({
      listed: listed.length,
      blocked: sweep.isBlocked,
      differences: [
        ...differences.map((difference) => withOutcome(difference, sweep, options)),
        ...addressDifferences.map(reportAddress),
      ],
    })
  } catch (error) {
    return report({ error: error instanceof Error ? error.message : String(error) })
  }
}

/** What a sweep would do. */
function foresee(
  differences: readonly InstanceDifference[],
  listed: readonly RelayInstance[],
  { force }: ComparisonOptions,
): SweepOutcome {
  const unowned = differences
    .filter(({ kind }) => kind !== 'missing' && kind !== 'unbound')
    .map((difference) => ({ ...difference, isRetired: difference.kind === 'retired' }))
  const { destroy, waiting, kept, isBlocked } = planSweep(unowned, listed.length, { force })
  return { destroyed: destroy, failed: new Map(), waiting, kept, isBlocked }
}

function withOutcome(
  { instanceId, kind, sessionId, since, keptUntil, isGone }: InstanceDifference,
  { destroyed, failed, waiting, kept, isBlocked }: SweepOutcome,
  { dryRun }: ComparisonOptions,
): ReportedDifference {
  const difference = { instance_id: instanceId, address: null, kind, session_id: sessionId, since }
  const result = (outcome: Outcome, error: string | null = null) => ({ ...difference, outcome, error, keptUntil })
  if (kind === 'missing') return result(isGone ? 'gone' : 'starting')
  if (kind === 'unbound') return result('kept')
  const error = failed.get(instanceId)
  if (error) return result('failed', error.message)
  if (destroyed.includes(instanceId)) return result(dryRun ? 'due' : 'destroyed')
  if (kept.includes(instanceId)) return result('earlier_epoch')
  // An instance that got its session meanwhile, or whose destruction did not start in time, is due in the next run.
  return result(waiting.includes(instanceId) ? 'waiting' : isBlocked ? 'blocked' : 'due')
}

/** The job `update_addresses` releases an unused address with a row within a minute, and others after a second look. */
const reportAddress = ({ instanceId, sessionId, host, kind, since, isGone }: AddressDifference): ReportedDifference => {
  const ofMissing = isGone ? 'gone' : 'starting'
  const outcome = kind === 'missing_address' ? ofMissing : since === null ? 'waiting' : 'due'
  const difference = { instance_id: instanceId, address: host, kind, session_id: sessionId, since, outcome } as const
  return { ...difference, error: null, keptUntil: null }
}
