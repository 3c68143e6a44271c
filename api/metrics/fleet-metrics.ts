/** Metrics of regions and their instances, read from Postgres. */
import { Gauge, type Registry } from 'prom-client'
import type { Sql } from '../../db/connection.ts'
import { countInstances } from '../../db/fleet/instance-list.ts'
import { countOrphans } from '../../db/fleet/orphans.ts'
import { listDrainedRegions } from '../../db/fleet/regions.ts'
import { countUnbound } from '../../db/fleet/warm-instances.ts'
import { listProviderChecks } from '../../db/operations/provider-checks.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'

/** Reads the figures. @returns a function that adds them to a registry. */
export async function readFleetGauges(
  sql: Sql,
  regions: readonly RegionConfig[],
): Promise<(registry: Registry) => void> {
  const names = regions.map(({ region }) => region)
  const [unbound, drainedRegions, existing, orphans, checks] = await Promise.all([
    countUnbound(sql),
    listDrainedRegions(sql),
    countInstances(sql),
    countOrphans(sql),
    listProviderChecks(sql),
  ])
  return (registry) => {
    const gauge = (name: string, help: string, labels: string[] = []) =>
      new Gauge({ name, help, labelNames: ['region', ...labels], registers: [registry] })
    const instances = gauge('svc_relay_instances', 'Instances that exist at the providers.')
    for (const { region, count } of existing) instances.set({ region }, count)

    const orphanCount = gauge('svc_relay_orphans', 'Existing instances without an owner.')
    const orphanAge = gauge('svc_relay_orphan_age_seconds', 'Time since the oldest orphan was first observed.')
    for (const region of names) orphanCount.set({ region }, 0)
    for (const region of names) orphanAge.set({ region }, 0)
    for (const figure of orphans) orphanCount.set({ region: figure.region }, figure.orphans)
    for (const figure of orphans) orphanAge.set({ region: figure.region }, figure.oldestSeconds)

    const warm = gauge('svc_relay_warm_instances', 'Instances that are kept for later sessions, by state.', ['state'])
    const wanted = gauge('svc_relay_warm_instances_wanted', 'Warm instances to keep: 0 while the region is drained.')
    const drained = gauge('svc_region_drained', '1 while the region takes no new sessions, otherwise 0.')
    const capacity = gauge('svc_relay_capacity', 'Maximum number of instances.')
    for (const config of regions) {
      const { region } = config
      const { ready, booting } = unbound.find((figure) => figure.region === region) ?? { ready: 0, booting: 0 }
      const isDrained = drainedRegions.includes(region)
      warm.set({ region, state: 'ready' }, ready)
      warm.set({ region, state: 'booting' }, booting)
      wanted.set({ region }, isDrained ? 0 : config.warm)
      drained.set({ region }, isDrained ? 1 : 0)
      capacity.set({ region }, config.capacity)
    }

    const working = gauge(
      'svc_provider_credentials_ok',
      "1 if the last check of the region's provider succeeded, else 0.",
    )
    for (const { region, error } of checks.filter((check) => names.includes(check.region)))
      working.set({ region }, error === null ? 1 : 0)
  }
}
