/** The job that finds out whether relays can report: without the proxy, its name or its certificate, none can. */
import type { Database } from '../../db/connection.ts'
import { recordProbe } from '../../db/fleet/report-paths.ts'
import { absenceSeconds } from '../../domain/relay/health.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Job } from '../worker/jobs.ts'
import { probeApi } from './api-probe.ts'

interface Deps {
  readonly config: Pick<Config, 'apiUrl' | 'regions' | 'relay'>
  readonly sql: Database
  readonly log: Logger
}

export function reportPathJobs({ config, sql, log }: Deps): readonly Job[] {
  const { apiUrl, relay } = config
  const { healthTimeoutSeconds } = relay
  const regions = config.regions.map(({ region }) => region)
  const absentSeconds = absenceSeconds('api', healthTimeoutSeconds)
  /** Which of the two problems this worker has logged, so that each is logged once. */
  let logged: 'cut' | 'never_reached' | undefined
  const run = async () => {
    // A failed probe and the pause before it take less than an absence, so that a single one is none.
    const problem = await probeApi(apiUrl, (absentSeconds / 2) * 1000)
    const { hasReached, cut } = await recordProbe(sql, {
      isReached: problem === undefined,
      regions,
      healthTimeoutSeconds,
    })
    const found = !hasReached ? 'never_reached' : cut.length > 0 ? 'cut' : undefined
    if (found === logged) return
    logged = found
    const details = { api_url: apiUrl, problem }
    if (found === 'cut')
      log.error({ ...details, regions: cut }, 'relays cannot reach the API, so their silence does not count')
    else if (found === 'never_reached')
      log.warn(details, 'the worker cannot reach SVC_API_URL, so it cannot detect that relays cannot either')
    else log.info({ api_url: apiUrl }, 'relays can reach the API')
  }
  return [{ name: 'probe_api', everySeconds: Math.max(0.25, absentSeconds / 5), runSecondsMax: 60, run }]
}
