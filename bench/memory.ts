/** What many live sessions cost a worker in memory. */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import { type RelaySessionRow, relaySessionColumns } from '../db/relay-sessions.ts'
import { createRelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import { type Machine, type RunningProgram, region, say, until } from './machine.ts'
import { absolute, type Row } from './pairs.ts'
import { paperInstance, type Rows } from './rows.ts'

const sessions = 10_000
const callsAtOnce = 32
const megabytesMax = 500

/** @param worker one on a task queue of its own that has had nothing to do yet. */
export async function measureMemory(machine: Machine, worker: RunningProgram, rows: Rows): Promise<Row[]> {
  const { taskQueue } = worker.config.temporal
  await sleep(5000)
  const empty = await megabytesOf(worker.pid)
  const workflows = createRelaySessionWorkflows(machine.temporal, {
    ...{ taskQueue, settings: worker.config.relay, callMillisMax: 60_000 },
  })
  const live = await liveRows(machine, rows)
  const limit = pLimit(callsAtOnce)
  const startedAt = performance.now()
  let begun = 0
  const begin = async (session: RelaySessionRow) => {
    await workflows.restart(session)
    begun += 1
    if (begun % 1000 === 0) say(`memory: ${begun} live sessions, worker ${await megabytesOf(worker.pid)} MB`)
  }
  await Promise.all(live.map((session) => limit(begin, session)))
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
  await until(
    'all live sessions are seen',
    async () => (await machine.temporal.workflow.count(query)).count >= sessions,
  )
  const full = await settled(worker.pid)
  say(`memory: worker ${empty} MB empty, ${full} MB after ${Math.round((performance.now() - startedAt) / 1000)} s`)
  const row = absolute(
    `memory of ${sessions.toLocaleString('en')} live sessions on one worker`,
    full - empty,
    'MB',
    megabytesMax,
  )
  return [{ ...row, floor: `${empty} MB empty` }]
}

/** Active sessions whose workflows were lost: the shortest way to many live ones. */
async function liveRows({ sql }: Machine, rows: Rows): Promise<RelaySessionRow[]> {
  const userIds = rows.users.map((user) => user.userId)
  const ids = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
    select (${userIds}::uuid[])[1 + n % ${userIds.length}::int], 'live-' || n, ${region}, 'user', 1
    from generate_series(1, ${sessions}) n returning id`
  return sql<RelaySessionRow[]>`
    update relay_sessions set state = 'active', reason = 'relay_ready', version = 1, active_at = now(),
      instance_id = ${paperInstance('')} || id
    where id = any(${ids.map(({ id }) => id)}::uuid[]) returning ${relaySessionColumns(sql)}`
}

const calmSeconds = 10

/** The most that it takes until that has not grown for a while: the worker is still at its backlog when the last call returns. */
async function settled(pid: number): Promise<number> {
  let most = 0
  for (let calm = 0; calm < calmSeconds; calm += 1) {
    const now = await megabytesOf(pid)
    if (now > most) [most, calm] = [now, 0]
    await sleep(1000)
  }
  return most
}

async function megabytesOf(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)])
  return Math.round(Number(stdout) / 1024)
}
