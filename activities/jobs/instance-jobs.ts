/** The job that compares the providers' instances with relay sessions, and destroys those without an owner. */
import type { Database } from '../../db/connection.ts'
import { markInstanceGone } from '../../db/instances.ts'
import { findOrphans } from '../../db/orphans.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import type { RelayProviders } from '../relay-providers.ts'
import type { Job } from './jobs.ts'

interface Deps {
  readonly config: Pick<Config, 'regions'>
  readonly sql: Database
  readonly log: Logger
  readonly providers: RelayProviders
}

/** An instance is destroyed only when it had no owner in two runs that are at least this far apart. */
const orphanSeconds = 60

export const instanceJobs = (deps: Deps): readonly Job[] => [
  { name: 'sweep_orphans', everySeconds: 60, runSecondsMax: 300, run: () => sweepOrphans(deps) },
]

/** Goes on with the other regions and instances after a failure. Throws an {@link AggregateError} of all failures at the end. */
async function sweepOrphans({ config, sql, log, providers }: Deps): Promise<void> {
  const failures: unknown[] = []
  for (const { region } of config.regions) {
    const provider = providers.get(region)
    if (!provider) continue
    try {
      const listed = (await provider.list()).filter((instance) => instance.region === region)
      const orphans = await findOrphans(sql, region, listed, {
        apartSeconds: orphanSeconds,
        listLagSeconds: provider.listLagSeconds,
      })
      failures.push(...(await destroyAll(orphans, region, { sql, log, provider })))
    } catch (error) {
      log.warn({ err: error, region }, 'the instances of a region could not be listed or compared')
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, messageOf(failures))
}

async function destroyAll(
  instanceIds: readonly string[],
  region: string,
  { sql, log, provider }: Pick<Deps, 'sql' | 'log'> & { readonly provider: RelayProvider },
): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const instanceId of instanceIds) {
    log.warn({ region, instance_id: instanceId }, 'destroying an instance without an owner')
    try {
      await provider.destroy(instanceId)
      await markInstanceGone(sql, instanceId)
    } catch (error) {
      log.warn({ err: error, region, instance_id: instanceId }, 'an instance without an owner could not be destroyed')
      failures.push(error)
    }
  }
  return failures
}

const messageOf = (failures: readonly unknown[]): string =>
  failures.map((failure) => (failure instanceof Error ? failure.message : String(failure))).join('; ')
