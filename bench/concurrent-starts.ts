/**
 * Concurrent starts of new relays, without a worker: the response time, and the time until Temporal has all workflows.
 */
import { randomUUID } from 'node:crypto'
import type { Database } from '../db/connection.ts'
import type { BenchData, BenchUser } from './data.ts'
import { figures } from './figures.ts'
import { type Call, callAll } from './load.ts'
import { measurePairs, type Pair } from './pairs.ts'
import { compare, type Row } from './rows.ts'
import { logProgress, type RunningProgram, waitUntil } from './stack.ts'
import type { Servers } from './throughput.ts'

const callers = 16
const connectionId = 'started'
/**
 * Regions of the default capacity, which the starts of a reading fill one after the other: all callers start in the
 * same one.
 */
export const startRegions = Array.from({ length: 16 }, (_, index) => ({
  region: `starts-${index}`,
  display_name: 'Starts',
  provider: 'local',
}))
const capacity = 50
/** Below the limit of waiting deliveries. The job that redelivers the rest needs a worker. */
const startsPerRound = startRegions.length * capacity

export async function measureStart({ floors, api, rounds }: Servers, sql: Database, data: BenchData): Promise<Row[]> {
  const starts = data.users.slice(0, startsPerRound).map((user, index) => {
    const region = startRegions[Math.floor(index / capacity)]?.region
    return { user, region }
  })
  const pairs = await measurePairs({
    what: 'POST /relay/start',
    rounds,
    floor: async () => {
      const calls = starts.map(({ user, region }) => floorCall(floors, user, region))
      const reading = await callAll(calls, callers, floors.pid)
      await deleteStarted(sql)
      return reading
    },
    ours: async () => {
      const calls = starts.map(({ user, region }) => startCall(api, user, region))
      const startedAt = performance.now()
      const reading = await callAll(calls, callers, api.pid)
      await waitUntilDelivered(sql)
      const seconds = (performance.now() - startedAt) / 1000
      logProgress(
        `${startsPerRound} starts were delivered to Temporal after ${seconds.toFixed(1)} s, ${Math.round(startsPerRound / seconds)}/s`,
      )
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

const bodyOf = (region: string | undefined) => JSON.stringify({ connection_id: connectionId, region })

const floorCall = (floors: RunningProgram, { userId, authSessionId }: BenchUser, region: string | undefined): Call => ({
  method: 'POST',
  url: `${floors.url}/start`,
  body: bodyOf(region),
  headers: { 'x-user': userId, 'x-auth-session': authSessionId, 'idempotency-key': randomUUID() },
})

/** @param region the default one when it is undefined. */
export const startCall = (api: RunningProgram, { bearer }: BenchUser, region?: string): Call => ({
  method: 'POST',
  url: `${api.url}/api/v1/relay/start`,
  body: bodyOf(region),
  headers: { authorization: bearer, 'idempotency-key': randomUUID() },
})

/** Deliveries of one reading must not compete with the next reading. */
export const waitUntilDelivered = (sql: Database): Promise<void> =>
  waitUntil('all starts are delivered', async () => {
    const [left] = await sql`
      select from relay_sessions where connection_id = ${connectionId} and command_delivered_seq < command_seq limit 1`
    return left === undefined
  })

export async function deleteStarted(sql: Database): Promise<void> {
  await sql`delete from relay_sessions where connection_id = ${connectionId}`
  await sql`vacuum relay_sessions, idempotency_keys, rate_limit_windows, users`
}
