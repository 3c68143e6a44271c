/** `svc fleet check`: calls the provider of each region, without creating anything. */
import { findFleetProblem, unnamedFleet } from '../../activities/fleet/fleet-names.ts'
import { checkProvider } from '../../activities/fleet/provider-checks.ts'
import { createRelayProviders } from '../../activities/fleet/relay-providers.ts'
import { type KeptInstances, listKeptInstances } from '../../db/fleet/kept-instances.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { exitCodes, SvcError } from '../svc/exit-codes.ts'
import { formatTime, printJson, printRemark, printTable } from '../svc/output.ts'
import { type OutputOptions, silentLog, type WorkerAccess, withWorkerAccess } from './worker-access.ts'

async function checkRegions({ config, sql }: WorkerAccess) {
  const fleetName = config.fleet.name
  const providers = await createRelayProviders(config, silentLog)
  const findProblem = async (provider: RelayProvider): Promise<string | null> => {
    const problem = await checkProvider(provider)
    if (problem !== null) return problem
    return (await findFleetProblem({ fleetName, sql, provider }))?.text ?? null
  }
  const kept = new Map((await listKeptInstances(sql)).map((row) => [row.region, row]))
  return Promise.all(
    config.regions.map(async ({ region, provider: kind }) => {
      const provider = providers.get(region)
      const problem = provider ? await findProblem(provider).catch(messageOf) : 'it has no provider'
      // Something that works now, and will not in a later version.
      const warning = provider?.account && fleetName === undefined ? unnamedFleet : null
      return { region, provider: kind, problem, warning, kept: kept.get(region) ?? null }
    }),
  )
}

const messageOf = (error: unknown): string =>
  `the names of the fleets could not be compared: ${error instanceof Error ? error.message : String(error)}`

/** Throws `SvcError` when a region has a problem. */
export async function check({ json }: OutputOptions): Promise<void> {
  const regions = await withWorkerAccess(checkRegions)
  if (json) {
    const present = (kept: KeptInstances | null) => kept && { instance_ids: kept.instanceIds, until: kept.until }
    printJson({ regions: regions.map((region) => ({ ...region, kept: present(region.kept) })) })
  } else {
    printTable(
      [
        { header: 'REGION', value: ({ region }) => region },
        { header: 'PROVIDER', value: ({ provider }) => provider },
        { header: 'RESULT', value: ({ problem }) => problem ?? 'ok' },
      ],
      regions,
    )
    for (const { kept } of regions) if (kept) printRemark(describeKept(kept))
    for (const warning of new Set(regions.flatMap((check) => check.warning ?? []))) printRemark(`Warning: ${warning}`)
  }
  const failed = regions.filter(({ problem }) => problem !== null).map(({ region }) => region)
  if (failed.length > 0) throw new SvcError(exitCodes.failed, `Failed: ${failed.join(', ')}.`)
}

const describeKept = ({ region, instanceIds, until }: KeptInstances): string =>
  `${region}: kept until ${formatTime(until)}, since they may carry streams that began before the database was restored: ${instanceIds.join(', ')}. To destroy them earlier: svc fleet compare --force`
