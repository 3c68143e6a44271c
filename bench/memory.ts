/** The memory of a worker with many live sessions. */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { type RelaySessionRow, relaySessionColumns } from '../db/relay/sessions.ts'
import { fakeInstanceId } from '../test/support/fake-relay-provider.ts'
import { createRelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import type { BenchData } from './data.ts'
import { figures } from './figures.ts'
import { residentMegabytes } from './process-cost.ts'
import { type Row, single } from './rows.ts'
import { logProgress, type RunningProgram, region, type Stack, waitUntil } from './stack.ts'

const sessions = 10_000
const concurrencyMax = 32

/** @param worker has its own task queue, and has not run a task yet. */
export async function measureMemory(stack: Stack, worker: RunningProgram, data: BenchData): Promise<Row[]> {
  const { taskQueue } = worker.config.temporal
  await sleep(5000)
  const empty = await residentMegabytes(worker.pid)
  const workflows = createRelaySessionWorkflows(stack.temporal, {
    taskQueue,
    settings: worker.config.relay,
    callMillisMax: 60_000,
    findMaskedEmail: async () => null,
  })
  const live = await insertLiveSessions(stack, data)
  const limit = pLimit(concurrencyMax)
  const startedAt = performance.now()
  let started = 0
  const begin = async (session: RelaySessionRow) => {
    await workflows.restart(session)
    started += 1
    if (started % 1000 === 0)
      logProgress(`memory: ${started} live sessions, worker ${await residentMegabytes(worker.pid)} MB`)
  }
  await Promise.all(live.map((session) => limit(begin, session)))
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
  await waitUntil(
    'all workflows are running',
    async () => (await stack.temporal.workflow.count(query)).count >= sessions,
  )
  const full = await waitForPeak(worker.pid)
  logProgress(
    `memory: worker ${empty} MB empty, ${full} MB after ${Math.round((performance.now() - startedAt) / 1000)} s`,
  )
  return [single(figures.worker_memory, full - empty, undefined, empty)]
}

/** Inserts active sessions without a workflow, whose workflows are restarted then. Faster than starting them. */
async function insertLiveSessions({ sql }: Stack, data: BenchData): Promise<RelaySessionRow[]> {
  const userIds = data.users.map((user) => user.userId)
  const ids = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
    select (${userIds}::uuid[])[1 + n % ${userIds.length}::int], 'live-' || n, ${region}, 'user', 1
    from generate_series(1, ${sessions}) n returning id`
  return sql<RelaySessionRow[]>`
    update relay_sessions set state = 'active', reason = 'relay_ready', version = 1, active_at = now(),
      instance_id = ${fakeInstanceId('')} || id
    where id = any(${ids.map(({ id }) => id)}::uuid[]) returning ${relaySessionColumns(sql)}`
}

const calmSeconds = 10

/** The peak, once it has not grown for some seconds. The worker still has a backlog when the last call returns. */
async function waitForPeak(pid: number): Promise<number> {
  let max = 0
  for (let stableSeconds = 0; stableSeconds < calmSeconds; stableSeconds += 1) {
    const now = await residentMegabytes(pid)
    if (now > max) [max, stableSeconds] = [now, 0]
    await sleep(1000)
  }
  return max
}
