/** The job that wakes the workflow of a region whose warm instances need work. */
import type { Database } from '../../db/connection.ts'
import { isWarmWorkDue, listRegionsWithUnbound } from '../../db/fleet/warm-instances.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { WarmInstancesWorkflows } from '../../workflows/warm-instances-client.ts'
import type { Job } from '../worker/jobs.ts'
import { warmRegionOf } from './warm-instances.ts'

interface Deps {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly warmInstances: WarmInstancesWorkflows
}

export const warmInstanceJobs = (deps: Deps): readonly Job[] => [
  { name: 'watch_warm_instances', everySeconds: 5, runSecondsMax: 60, run: () => watchWarmInstances(deps) },
]

async function watchWarmInstances({ config, sql, log, warmInstances }: Deps): Promise<void> {
  const withUnbound = new Set(await listRegionsWithUnbound(sql))
  for (const { region, warm } of config.regions) {
    if (warm === 0 && !withUnbound.has(region)) continue
    if (await isWarmWorkDue(sql, warmRegionOf(config, region))) await warmInstances.wake(region)
  }
  const configured = new Set(config.regions.map(({ region }) => region))
  for (const region of withUnbound)
    if (!configured.has(region))
      log.error({ region }, 'warm instances exist in a region that is not in SVC_REGIONS: put it back with "warm":0')
}
