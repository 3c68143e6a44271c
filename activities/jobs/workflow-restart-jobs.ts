/**
 * The round that compares live sessions and accounts with the workflows that Temporal runs. An execution may be lost in many
 * ways: terminated, failed, deleted, or gone with a store that was restored from a backup. Postgres says what should run.
 */
import pLimit from 'p-limit'
import type { Database } from '../../db/connection.ts'
import { claimSignals, liveAmong, settledAmong, startedSessions } from '../../db/relay-sessions.ts'
import { listAccountsWithDeadline } from '../../db/subscriptions.ts'
import type { Logger } from '../../platform/log.ts'
import type { RelaySessionActors } from '../../workflows/relay-session-client.ts'
import type { SubscriptionWorkflows } from '../../workflows/subscription-client.ts'
import type { Job } from './jobs.ts'

interface RestartNeeds {
  readonly sql: Database
  readonly log: Logger
  readonly actors: RelaySessionActors
}

interface Needs extends RestartNeeds {
  readonly subscriptions: SubscriptionWorkflows
}

/** Temporal's list lags behind: what is younger may be missing from it. */
const listLagSeconds = 15
/** Workflows looked at more closely in one round; the next rounds have the others. */
const roundMax = 500
const callsMax = 16

export const workflowRestartJobs = (needs: Needs): readonly Job[] => [
  {
    name: 'restart_workflows',
    everySeconds: 15,
    roundSecondsMax: 120,
    run: async (signal) => {
      await restartLostSessions(needs, signal)
      await restartLostSubscriptions(needs, signal)
    },
  },
]

async function restartLostSessions(needs: Needs, signal?: AbortSignal): Promise<void> {
  const { sql, actors } = needs
  const live = await startedSessions(sql, listLagSeconds)
  const running = await actors.listRunning()

  const missing = live.filter(({ id }) => !running.has(id)).map(({ id }) => id)
  await forEach(missing, needs, signal, async (id) => {
    if (!(await actors.isRunning(id))) await restartWorkflow(id, needs)
  })
  // After a restore the two stores may be of different times: a workflow whose state differs from its row looks at it.
  const differing = live.filter(({ id, state }) => running.has(id) && running.get(id) !== state).map(({ id }) => id)
  const known = new Set(live.map(({ id }) => id))
  const notLive = [...running].filter(([id, state]) => !known.has(id) && state !== 'stopped').map(([id]) => id)
  const outdated = await settledAmong(sql, [...differing, ...notLive], listLagSeconds)
  await forEach(await claimSignals(sql, outdated), needs, signal, (id) => actors.wake(id))
}

/** Starts a new execution for a live session, and hands it the session's command. */
export async function restartWorkflow(sessionId: string, { sql, log, actors }: RestartNeeds): Promise<void> {
  for (const session of await liveAmong(sql, [sessionId])) {
    log.warn({ session_id: sessionId }, 'the workflow of a live session was lost and is restarted')
    await actors.restart(session)
    await actors.deliver(session)
  }
}

/** An account with a deadline has a workflow that keeps it; waking one that was lost starts it again. */
async function restartLostSubscriptions(needs: Needs, signal?: AbortSignal): Promise<void> {
  const { sql, log, subscriptions } = needs
  const running = await subscriptions.listRunning()
  const missing = (await listAccountsWithDeadline(sql)).filter((userId) => !running.has(userId))
  await forEach(missing, needs, signal, async (userId) => {
    if (await subscriptions.isRunning(userId)) return
    log.warn({ user_id: userId }, 'the workflow of an account was lost and is restarted')
    await subscriptions.wake(userId)
  })
}

/** Does the work for some of the ids, in no order: if there are more than a round takes, or some fail, none is always last. */
async function forEach(
  ids: readonly string[],
  { log }: Needs,
  signal: AbortSignal | undefined,
  work: (id: string) => Promise<unknown>,
): Promise<void> {
  const limit = pLimit(callsMax)
  const chosen = ids.length <= roundMax ? ids : ids.toSorted(() => Math.random() - 0.5).slice(0, roundMax)
  await Promise.all(
    chosen.map((id) =>
      limit(async () => {
        if (signal?.aborted) return
        await work(id).catch((error: unknown) =>
          log.warn({ err: error, id }, 'a workflow could not be looked after yet'),
        )
      }),
    ),
  )
}
