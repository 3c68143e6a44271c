/** The job that compares the providers' instances with relay sessions, and destroys those without an owner. */
import type { Database } from '../../db/connection.ts'
import { countInstancesElsewhere } from '../../db/fleet/instance-comparison.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Job } from '../worker/jobs.ts'
import type { WorkerMetrics } from '../worker/metrics.ts'
import { findFleetProblem } from './fleet-names.ts'
import {
  listAddresses,
  listRegion,
  type SweepLimits,
  sweepAddresses,
  sweepLimits,
  sweepRegion,
} from './orphan-sweep.ts'
import type { RelayProviders } from './relay-providers.ts'

interface Deps {
  readonly config: Pick<Config, 'fleet' | 'regions'>
  readonly sql: Database
  readonly log: Logger
  readonly providers: RelayProviders
  readonly metrics: Pick<WorkerMetrics, 'countOrphanSweep'>
}

export const instanceJobs = (deps: Deps, limits: SweepLimits = sweepLimits): readonly Job[] => [
  {
    name: 'sweep_orphans',
    everySeconds: 60,
    runSecondsMax: 300,
    run: (signal) => sweepOrphans(deps, limits, signal),
  },
]

/**
 * A failure in one region or of one instance affects no other. Throws an {@link AggregateError} of all failures at the
 * end.
 */
async function sweepOrphans(deps: Deps, limits: SweepLimits, signal: AbortSignal | undefined): Promise<void> {
  const { config, sql, log, metrics } = deps
  const names = config.regions.map(({ region }) => region)
  const sweeps = await Promise.all(
    names.map(async (region): Promise<unknown[]> => {
      const provider = deps.providers.get(region)
      if (!provider) return []
      const sweep = { sql, log, provider, region, limits, signal }
      try {
        const problem = await findFleetProblem({ fleetName: config.fleet.name, sql, provider })
        if (problem?.blocksSweep) {
          log.error({ region }, `a region was not swept: ${problem.text}`)
          metrics.countOrphanSweep(region, true)
          return []
        }
        const { failed, isBlocked } = await sweepRegion(sweep, await listRegion(sweep))
        metrics.countOrphanSweep(region, isBlocked)
        // After the instances, whose rows say which addresses are used.
        await sweepAddresses(sweep, await listAddresses(sweep))
        return [...failed.values()]
      } catch (error) {
        log.warn({ err: error, region }, 'the instances of a region could not be listed or compared')
        return [error]
      }
    }),
  )
  await reportUnlistedRegions(deps, names)
  const failures = sweeps.flat()
  if (failures.length > 0) throw new AggregateError(failures, messageOf(failures))
}

/** Without its configuration a region cannot be listed, so nothing finds its orphans. */
async function reportUnlistedRegions({ sql, log }: Deps, configured: readonly string[]): Promise<void> {
  const elsewhere = await countInstancesElsewhere(sql, configured)
  if (elsewhere.length > 0)
    log.error(
      { regions: elsewhere },
      'instances exist in regions that are not in SVC_REGIONS: put these back until their instances are gone',
    )
}

const messageOf = (failures: readonly unknown[]): string =>
  failures.map((failure) => (failure instanceof Error ? failure.message : String(failure))).join('; ')
