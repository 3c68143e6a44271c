/** `npm run fleet -- check`: calls the provider of each region, without creating anything. */
import type { Database } from '../../db/connection.ts'
import { type KeptInstances, listKeptInstances } from '../../db/fleet/kept-instances.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { findFleetProblem, unnamedFleet } from './fleet-names.ts'
import { checkProvider } from './provider-checks.ts'
import { createRelayProviders } from './relay-providers.ts'

export interface RegionCheck {
  readonly region: string
  readonly provider: string
  readonly problem: string | null
  /** Something that works now, and will not in a later version. */
  readonly warning: string | null
  /** Instances that the sweep leaves alone, since they may carry streams of an earlier epoch. */
  readonly kept: KeptInstances | null
}

export async function checkRegions(config: Config, sql: Database, log: Logger): Promise<RegionCheck[]> {
  const fleetName = config.fleet.name
  const providers = await createRelayProviders(config, log)
  const findProblem = async (provider: RelayProvider): Promise<string | null> => {
    const problem = await checkProvider(provider)
    if (problem !== null) return problem
    return (await findFleetProblem({ fleetName, sql, provider }))?.text ?? null
  }
  const kept = new Map((await listKeptInstances(sql)).map((one) => [one.region, one]))
  return Promise.all(
    config.regions.map(async ({ region, provider: kind }) => {
      const provider = providers.get(region)
      const problem = provider ? await findProblem(provider).catch(messageOf) : 'it has no provider'
      const warning = provider?.account && fleetName === undefined ? unnamedFleet : null
      return { region, provider: kind, problem, warning, kept: kept.get(region) ?? null }
    }),
  )
}

const messageOf = (error: unknown): string =>
  `the names of the fleets could not be compared: ${error instanceof Error ? error.message : String(error)}`

export function formatCheck(regions: readonly RegionCheck[]): string {
  const warnings = [...new Set(regions.flatMap(({ warning }) => warning ?? []))]
  return [
    ...regions.map(({ region, provider, problem }) => `${region} (${provider}): ${problem ?? 'ok'}`),
    ...regions.flatMap(({ kept }) => (kept ? [describeKept(kept)] : [])),
    ...warnings.map((warning) => `Warning: ${warning}`),
    '',
  ].join('\n')
}

const describeKept = ({ region, instanceIds, until }: KeptInstances): string =>
  `${region}: kept until ${until.toISOString()}, since they may carry streams that began before the database was restored: ${instanceIds.join(', ')}. To destroy them earlier: npm run fleet -- reconcile --force`

export const presentCheck = (regions: readonly RegionCheck[]): object => ({
  regions: regions.map(({ kept, ...region }) => ({
    ...region,
    kept: kept && { instance_ids: kept.instanceIds, until: kept.until.toISOString() },
  })),
})
