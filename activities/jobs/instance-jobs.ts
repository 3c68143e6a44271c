/** The round that compares the providers' instances with our rows, and destroys those without an owner. */
import type { Database } from '../../db/connection.ts'
import { noteInstanceGone, orphansAmong } from '../../db/instances.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import type { RelayProviders } from '../relay-providers.ts'
import type { Job } from './jobs.ts'

interface Needs {
  readonly config: Pick<Config, 'regions'>
  readonly sql: Database
  readonly log: Logger
  readonly providers: RelayProviders
}

/** An instance is destroyed as an orphan only when two rounds at least this far apart saw it so, in seconds. */
const orphanApartSeconds = 60

export const instanceJobs = (needs: Needs): readonly Job[] => [
  { name: 'sweep_orphans', everySeconds: 60, roundSecondsMax: 300, run: () => sweepOrphans(needs) },
]

/** Each region by itself: a listing or a destruction that fails keeps no other from its turn. Rejects in the end with what failed. */
async function sweepOrphans({ config, sql, log, providers }: Needs): Promise<void> {
  const failures: unknown[] = []
  for (const { region } of config.regions) {
    const provider = providers.get(region)
    if (!provider) continue
    try {
      const listed = (await provider.list()).filter((instance) => instance.region === region)
      const orphans = await orphansAmong(sql, region, listed, orphanApartSeconds)
      failures.push(...(await destroyAll(orphans, region, { sql, log, provider })))
    } catch (error) {
      log.warn({ err: error, region }, 'the instances of a region could not be compared')
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, messageOf(failures))
}

async function destroyAll(
  instanceIds: readonly string[],
  region: string,
  { sql, log, provider }: Pick<Needs, 'sql' | 'log'> & { readonly provider: RelayProvider },
): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const instanceId of instanceIds) {
    log.warn({ region, instance_id: instanceId }, 'destroying an orphan')
    try {
      await provider.destroy(instanceId)
      await noteInstanceGone(sql, instanceId)
    } catch (error) {
      log.warn({ err: error, region, instance_id: instanceId }, 'an orphan could not be destroyed yet')
      failures.push(error)
    }
  }
  return failures
}

const messageOf = (failures: readonly unknown[]): string =>
  failures.map((failure) => (failure instanceof Error ? failure.message : String(failure))).join('; ')
