/**
 * Jobs and deadlines of relay sessions, due when a test wants it. A job runs in the process of the test: a run of the
 * worker may have read the rows before the test changed them.
 */
import { instanceJobs } from '../../activities/fleet/instance-jobs.ts'
import { reportPathJobs } from '../../activities/fleet/report-path-jobs.ts'
import { warmInstanceJobs } from '../../activities/fleet/warm-instance-jobs.ts'
import { lostRelayJobs } from '../../activities/relay/lost-relay-jobs.ts'
import { relaySessionJobs } from '../../activities/relay/session-jobs.ts'
import { workflowRestartJobs } from '../../activities/worker/workflow-restart-jobs.ts'
import type { Database } from '../../db/connection.ts'
import { createLog } from '../../platform/log.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { createFailingWorkflows } from '../../workflows/failing-workflows-client.ts'
import { createWarmInstancesWorkflows } from '../../workflows/warm-instances-client.ts'
import type { TestApi } from './api.ts'

export type RelayJobName =
  | 'watch_health'
  | 'watch_relays'
  | 'probe_api'
  | 'watch_warm_instances'
  | 'sweep_orphans'
  | 'restart_workflows'

/** Runs a job once. @param providers by region; only some jobs need them. */
export async function runRelayJob(
  { sql, services }: TestApi,
  name: RelayJobName,
  providers: ReadonlyMap<string, RelayProvider> = new Map(),
): Promise<void> {
  const { config, relaySessions, sealing, subscriptions, temporal } = services
  const { taskQueue } = config.temporal
  const warmInstances = createWarmInstancesWorkflows(temporal, { taskQueue, callMillisMax: 30_000 })
  const failingWorkflows = createFailingWorkflows(temporal, { taskQueue, callMillisMax: 30_000 })
  const metrics = { countOrphanSweep: () => {}, countTransitions: () => {}, countGoneRelay: () => {} }
  const deps = { config, sql, log: createLog('worker', 'fatal'), providers }
  const jobs = [
    ...warmInstanceJobs({ ...deps, warmInstances }),
    ...relaySessionJobs({ ...deps, relaySessions }),
    ...lostRelayJobs({ ...deps, relaySessions, metrics }),
    ...reportPathJobs(deps),
    ...instanceJobs({ ...deps, metrics }),
    ...workflowRestartJobs({
      ...deps,
      sealing,
      metrics,
      failingWorkflows,
      relaySessions,
      subscriptions,
      warmInstances,
    }),
  ]
  await jobs.find((job) => job.name === name)?.run()
}

/** Ends the grace of a session now: its workflow is woken, and reads the end from the row. */
export async function endGrace({ sql, services }: TestApi, sessionId: string): Promise<void> {
  await sql`update relay_sessions set grace_ends_at = now() where id = ${sessionId} and state = 'grace'`
  await services.relaySessions.wake(sessionId)
}

/** As if the API had been there, and the path of reports open where it is, for a day. */
export async function lengthenReception(sql: Database): Promise<void> {
  await sql`update presence set since = now() - interval '1 day' where role = 'api'`
  await sql`update report_paths set since = now() - interval '1 day'`
}

/**
 * Makes the relays of sessions silent for an hour, in which the API could take reports. One that has not reported was
 * bound an hour ago, and one that was missing at its provider was so a minute ago.
 */
export async function makeSilent({ sql }: TestApi, sessionIds: readonly string[]): Promise<void> {
  await lengthenReception(sql)
  await sql`update relay_health set last_report_at = now() - interval '1 hour' where session_id in ${sql(sessionIds)}`
  await sql`
    update relay_sessions set active_at = case when active_at is not null then now() - interval '1 hour' end,
      instance_bound_at = case when instance_bound_at is not null then now() - interval '1 hour' end,
      instance_missing_since = case when instance_missing_since is not null then now() - interval '1 minute' end
    where id in ${sql(sessionIds)}`
}
