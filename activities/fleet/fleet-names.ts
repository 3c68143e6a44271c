/** Compares the names of the fleets that a cloud account shows with the one of this control plane. */
import type { Sql } from '../../db/connection.ts'
import { findKnownInstances } from '../../db/fleet/members.ts'
import { describeFleetConflict, findFleetConflict } from '../../domain/fleet/conflict.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { withTimeout } from '../../platform/timeout.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import type { RelayProviders } from './relay-providers.ts'

export const unnamedFleet =
  'SVC_FLEET_NAME is not set, and the next version requires it for regions in a cloud: run svc fleet adopt --name NAME, set SVC_FLEET_NAME=NAME and restart the workers (docs/operating.md, The fleet)'

const listMillisMax = 10_000

interface RegionDeps {
  readonly fleetName: string | undefined
  readonly sql: Sql
  readonly provider: RelayProvider
  readonly millisMax?: number
}

export interface FleetProblem {
  /** What is wrong, and what to do next. */
  readonly text: string
  readonly blocksSweep: boolean
}

/**
 * Finds instances that may be mistaken. Null also where no other control plane can reach the instances. Rejects when
 * the provider does not answer in time.
 */
export async function findFleetProblem({
  fleetName,
  sql,
  provider: { account },
  millisMax = listMillisMax,
}: RegionDeps): Promise<FleetProblem | null> {
  if (!account) return null
  const seen = await withTimeout(millisMax, 'the list of all fleets took too long', () => account.listAll())
  const known = await findKnownInstances(sql, seen)
  const conflict = findFleetConflict(
    fleetName,
    seen.map((instance) => ({ ...instance, isKnown: known.has(instance.instanceId) })),
  )
  return conflict && { text: describeFleetConflict(fleetName, conflict), blocksSweep: conflict.blocksSweep }
}

interface Deps {
  readonly config: Pick<Config, 'fleet' | 'regions'>
  readonly sql: Sql
  readonly log: Logger
  readonly providers: RelayProviders
}

/**
 * Rejects while this control plane and another one, or its own instances under another name, could be mistaken for each
 * other. A provider that does not answer stops no worker: the sweep looks again before it destroys anything.
 */
export async function assertFleetName({ config, sql, log, providers }: Deps): Promise<void> {
  const fleetName = config.fleet.name
  const readProblem = async (region: string, provider: RelayProvider): Promise<string[]> => {
    try {
      const problem = await findFleetProblem({ fleetName, sql, provider })
      return problem ? [`Region ${region}: ${problem.text}`] : []
    } catch (error) {
      log.warn({ err: error, region }, 'the names of the fleets in a region could not be compared')
      return []
    }
  }
  const regions = [...providers].filter(([, { account }]) => account !== undefined)
  const problems = (await Promise.all(regions.map(([region, provider]) => readProblem(region, provider)))).flat()
  if (problems.length > 0)
    throw new Error(`The worker does not start, since it could end the relays of others. ${problems.join(' ')}`)
  if (regions.length > 0 && fleetName === undefined) log.warn(unnamedFleet)
}
