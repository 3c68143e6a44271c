/** Concurrent starts of new relays, without a worker: the response time, and the time until Temporal has all workflows. */
import { randomUUID } from 'node:crypto'
import type { Database } from '../db/connection.ts'
import type { BenchData } from './data.ts'
import { figures } from './figures.ts'
import { callAll } from './load.ts'
import { measurePairs, type Pair } from './pairs.ts'
import { compare, type Row } from './rows.ts'
import { logProgress, waitUntil } from './stack.ts'
import type { Servers } from './throughput.ts'

const callers = 16
/** Below the limit of waiting deliveries. The job that redelivers the rest needs a worker. */
const startsPerRound = 800
const connectionId = 'started'

export async function measureStart({ floors, api, rounds }: Servers, sql: Database, data: BenchData): Promise<Row[]> {
  const users = data.users.slice(0, startsPerRound)
  const body = JSON.stringify({ connection_id: connectionId })
  const pairs = await measurePairs({
    what: 'POST /relay/start',
    rounds,
    floor: async () => {
      const calls = users.map(({ userId, authSessionId }) => ({
        ...{ method: 'POST' as const, url: `${floors.url}/start`, body },
        headers: { 'x-user': userId, 'x-auth-session': authSessionId, 'idempotency-key': randomUUID() },
      }))
      const reading = await callAll(calls, callers, floors.pid)
      await deleteStarted(sql)
      return reading
    },
    ours: async () => {
      const calls = users.map(({ bearer }) => ({
        ...{ method: 'POST' as const, url: `${api.url}/api/v1/relay/start`, body },
        headers: { authorization: bearer, 'idempotency-key': randomUUID() },
      }))
      const startedAt = performance.now()
      const reading = await callAll(calls, callers, api.pid)
      await waitUntilDelivered(sql, startedAt)
      await deleteStarted(sql)
      return reading
    },
  })
  return startRows(pairs)
}

const startRows = (pairs: readonly Pair[]): Row[] => [
  compare(figures.relay_start_p50, pairs, 'p50 ms'),
  compare(figures.relay_start_throughput, pairs, 'per second'),
  compare(figures.relay_start_cpu, pairs, 'µs CPU each'),
]

/** Deliveries of one reading must not compete with the next reading. */
async function waitUntilDelivered(sql: Database, startedAt: number): Promise<void> {
  await waitUntil('all starts are delivered', async () => {
    const [left] = await sql`
      select from relay_sessions where connection_id = ${connectionId} and command_delivered_seq < command_seq limit 1`
    return left === undefined
  })
  const seconds = (performance.now() - startedAt) / 1000
  logProgress(
    `${startsPerRound} starts were delivered to Temporal after ${seconds.toFixed(1)} s, ${Math.round(startsPerRound / seconds)}/s`,
  )
}

async function deleteStarted(sql: Database): Promise<void> {
  await sql`delete from relay_sessions where connection_id = ${connectionId}`
  await sql`vacuum relay_sessions, idempotency_keys, rate_limit_windows, users`
}
