/**
 * The job that compares live sessions and accounts with deadlines with the workflows that run. An execution may be lost
 * in many ways: terminated, failed, deleted, or missing from a store that was restored from a backup. Postgres decides
 * what should run.
 */
import pLimit from 'p-limit'
import { listAccountsWithDeadline } from '../../db/billing/subscriptions.ts'
import type { Database } from '../../db/connection.ts'
import { findLiveSessions } from '../../db/relay/sessions.ts'
import { claimSignals, listStartedSessions, sessionsWithoutRecentTransition } from '../../db/relay/signals.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelaySessionWorkflows } from '../../workflows/relay-session-client.ts'
import { endFailingWorkflows, type FailingWorkflowDeps } from './failing-workflows.ts'
import type { Job } from './jobs.ts'

interface RestartDeps {
  readonly sql: Database
  readonly log: Logger
  readonly relaySessions: RelaySessionWorkflows
}

interface Deps extends RestartDeps, FailingWorkflowDeps {}

/** Temporal's list lags behind: newer workflows may be missing from it. */
const listLagSeconds = 15
/** Workflows that one run checks and restarts at most. */
const workflowsMax = 500
const callsMax = 16

export const workflowRestartJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'restart_workflows',
    everySeconds: 15,
    runSecondsMax: 120,
    run: async (signal) => {
      await endFailingWorkflows(deps, workflowsMax, signal)
      await restartLostSessions(deps, signal)
      await restartLostSubscriptions(deps, signal)
    },
  },
]

async function restartLostSessions(deps: Deps, signal?: AbortSignal): Promise<void> {
  const { sql, relaySessions } = deps
  const live = await listStartedSessions(sql, listLagSeconds)
  const running = await relaySessions.listRunning()

  const missing = live.filter(({ id }) => !running.has(id)).map(({ id }) => id)
  await forEach(missing, deps, signal, async (id) => {
    if (!(await relaySessions.isRunning(id))) await restartWorkflow(id, deps)
  })
  // After a restore from backups the two stores may be of different times: a workflow whose state differs is woken to
  // read its row.
  const differing = live.filter(({ id, state }) => running.has(id) && running.get(id) !== state).map(({ id }) => id)
  const liveIds = new Set(live.map(({ id }) => id))
  const notLive = [...running].filter(([id, state]) => !liveIds.has(id) && state !== 'stopped').map(([id]) => id)
  const outdated = await sessionsWithoutRecentTransition(sql, [...differing, ...notLive], listLagSeconds)
  await forEach(await claimSignals(sql, outdated), deps, signal, (id) => relaySessions.wake(id))
}

/** Starts a new execution for a live session and delivers the session's last command to it. */
export async function restartWorkflow(sessionId: string, { sql, log, relaySessions }: RestartDeps): Promise<void> {
  for (const session of await findLiveSessions(sql, [sessionId])) {
    log.warn({ session_id: sessionId }, 'the workflow of a live session was lost and is restarted')
    await relaySessions.restart(session)
    await relaySessions.deliver(session)
  }
}

/** An account with a deadline has a workflow that waits for it. Waking one that was lost starts it again. */
async function restartLostSubscriptions(deps: Deps, signal?: AbortSignal): Promise<void> {
  const { sql, log, subscriptions } = deps
  const running = await subscriptions.listRunning()
  const accounts = await listAccountsWithDeadline(sql)
  const missing = accounts.filter(({ id }) => !running.has(id)).map(({ id }) => id)
  await forEach(missing, deps, signal, async (userId) => {
    if (await subscriptions.isRunning(userId)) return
    log.warn({ user_id: userId }, 'the workflow of an account was lost and is restarted')
    await subscriptions.wake(userId)
  })
  // After a restore from backups a workflow may be older than its account, and not wait for its deadline.
  const differing = accounts.filter(({ id, planStatus }) => (running.get(id) ?? planStatus) !== planStatus)
  await forEach(
    differing.map(({ id }) => id),
    deps,
    signal,
    (userId) => subscriptions.wake(userId),
  )
}

/**
 * Does the work for the ids, or for a random part of them when one run cannot take all: each has its turn, even if some
 * always fail.
 */
async function forEach(
  ids: readonly string[],
  { log }: Deps,
  signal: AbortSignal | undefined,
  work: (id: string) => Promise<unknown>,
): Promise<void> {
  const chosen = ids.length <= workflowsMax ? ids : ids.toSorted(() => Math.random() - 0.5).slice(0, workflowsMax)
  await pLimit(callsMax).map(chosen, async (id) => {
    if (signal?.aborted) return
    await work(id).catch((error: unknown) =>
      log.warn({ err: error, id }, 'a workflow could not be checked or restarted'),
    )
  })
}
