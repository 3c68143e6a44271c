/** The job that finds out whether the parts of the service work, for the status page. */
import type { Database } from '../../db/connection.ts'
import { recordIncidents } from '../../db/transactions/record-incidents.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Job } from './jobs.ts'

interface Deps {
  readonly config: Pick<Config, 'regions' | 'relay'>
  readonly sql: Database
  readonly log: Logger
}

export const incidentJobs = (deps: Deps): readonly Job[] => [
  { name: 'record_incidents', everySeconds: 15, runSecondsMax: 60, run: () => recordAndLog(deps) },
]

async function recordAndLog({ config, sql, log }: Deps): Promise<void> {
  const regions = config.regions.map(({ region }) => region)
  const { healthTimeoutSeconds } = config.relay
  for (const { change, ...subject } of await recordIncidents(sql, { regions, healthTimeoutSeconds }))
    if (change === 'began') log.warn(subject, 'an incident began')
    else log.info(subject, 'an incident ended')
}
