/** What a service with a number of live sessions costs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { recentSlots } from '../domain/relay/ingest.ts'
import * as messages from '../workflows/messages.ts'
import { startCall } from './concurrent-starts.ts'
import type { BenchUser } from './data.ts'
import type { GrowthReading } from './growth-figures.ts'
import { type Call, call, callAll, throughput } from './load.ts'
import type { Reading } from './pairs.ts'
import { cpuMicros, cpuMicrosOfFamily, residentMegabytes } from './process-cost.ts'
import { logProgress, type RunningProgram, type Stack, waitUntil } from './stack.ts'
import { healthReport } from './throughput.ts'

export interface GrowthBench {
  readonly stack: Stack
  readonly api: RunningProgram
  readonly worker: RunningProgram
  /** Those with a live session come first. */
  readonly users: readonly BenchUser[]
  /** Users without a session, each for one start. */
  readonly starters: BenchUser[]
  /** Of the live sessions, in the order of their users. */
  readonly sessionIds: string[]
  /** The size of the database before the first live session. */
  readonly emptyBytes: number
}

const calls = 300
const startCalls = 40
const pages = 30
const sampled = 10
const loadConnections = 8
const loadSeconds = 5
const idleSeconds = 10

export async function readCosts(bench: GrowthBench): Promise<GrowthReading> {
  const database = await readDatabaseSize(bench)
  const latencies = await readLatencies(bench)
  const reports = await readReportCosts(bench)
  const starts = await readStartCosts(bench)
  const idle = await cpuOf(bench, () => sleep(idleSeconds * 1000))
  return {
    ...latencies,
    ...reports,
    ...starts,
    idle_cpu_api: idle.api / 1000 / idleSeconds,
    idle_cpu_worker: idle.worker / 1000 / idleSeconds,
    idle_cpu_postgres: idle.postgres / 1000 / idleSeconds,
    idle_cpu_temporal: idle.temporal / 1000 / idleSeconds,
    memory_api: await residentMegabytes(bench.api.pid),
    memory_worker: await residentMegabytes(bench.worker.pid),
    ...database,
    record_per_hour: await readRecordGrowth(bench),
    history_events: await readHistoryEvents(bench),
  }
}

/** The size after a vacuum, so that versions of rows from earlier reports do not count. */
async function readDatabaseSize({ stack, sessionIds, emptyBytes }: GrowthBench) {
  const bytes = await databaseBytes(stack)
  return { database_size: bytes / 1e6, database_per_session: (bytes - emptyBytes) / 1000 / sessionIds.length }
}

export async function databaseBytes({ sql }: Stack): Promise<number> {
  await sql`vacuum analyze`
  const [row] = await sql<{ bytes: number }[]>`select pg_database_size(current_database())::float8 as bytes`
  return row?.bytes ?? Number.NaN
}

const recordedHours = 4

/** The stream records of some hours of all live sessions, as their reports would leave them. */
async function readRecordGrowth({ stack: { sql }, sessionIds }: GrowthBench): Promise<number> {
  await sql`truncate stream_records`
  for (let part = 0; part < recordedHours * 6; part += 1)
    await sql`
      insert into stream_records (session_id, began_at, points)
      select id, now() + make_interval(mins => ${part * 10}), pack_stream_points(array(
        select floor(random() * 2 ^ 55)::bigint from generate_series(1, ${recentSlots})))
      from unnest(${sessionIds}::uuid[]) id`
  const [row] = await sql<{ bytes: number }[]>`
    select pg_total_relation_size('stream_records')::float8 as bytes`
  await sql`truncate stream_records`
  return (row?.bytes ?? Number.NaN) / 1000 / sessionIds.length / recordedHours
}

/** Evenly spaced, and equally many at each size, since the api keeps verified access tokens. */
const sample = <Item>(items: readonly Item[]): Item[] =>
  Array.from({ length: sampled }, (_, index) => items[Math.floor((index * items.length) / sampled)] as Item)

const repeat = (count: number, ofCalls: readonly Call[]): Call[] =>
  Array.from({ length: count }, (_, index) => ofCalls[index % ofCalls.length] as Call)

export const reportCall = (api: RunningProgram, sessionId: string): Call => ({
  method: 'POST',
  url: `${api.url}/api/v1/relay/health`,
  body: healthReport(sessionId),
  headers: { 'x-relay-auth': api.config.relayAuthSecrets[0] ?? '' },
})

async function readLatencies({ api, users, sessionIds }: GrowthBench) {
  const measure = async (name: string, all: readonly Call[]): Promise<Reading> => {
    await callAll(all.slice(0, sampled), 1, api.pid)
    const reading = await callAll(all, 1, api.pid)
    logProgress(`${name}: p50 ${reading['p50 ms']?.toFixed(2)} ms, p99 ${reading['p99 ms']?.toFixed(2)} ms`)
    return reading
  }
  const activeCalls = sample(users.slice(0, sessionIds.length)).map(
    ({ bearer }): Call => ({
      method: 'GET',
      url: `${api.url}/api/v1/relay/active`,
      headers: { authorization: bearer },
    }),
  )
  const reportCalls = sample(sessionIds).map((id) => reportCall(api, id))
  const active = await measure('GET /relay/active', repeat(calls, activeCalls))
  const health = await measure('POST /relay/health', repeat(calls, reportCalls))
  const metrics = await measure(
    'GET /metrics',
    repeat(pages, [{ method: 'GET', url: `${api.url}/metrics`, headers: {} }]),
  )
  return {
    active_p50: active['p50 ms'] ?? Number.NaN,
    active_p99: active['p99 ms'] ?? Number.NaN,
    health_p50: health['p50 ms'] ?? Number.NaN,
    health_p99: health['p99 ms'] ?? Number.NaN,
    metrics_p50: metrics['p50 ms'] ?? Number.NaN,
    metrics_p99: metrics['p99 ms'] ?? Number.NaN,
  }
}

/** Reports of all live sessions in turn, as fast as a few connections can send them. */
async function readReportCosts(bench: GrowthBench) {
  const { api, sessionIds, stack } = bench
  const requests = sessionIds.map((id) => {
    const { headers, body } = reportCall(api, id)
    const json = { 'content-type': 'application/json' }
    return { method: 'POST' as const, path: '/api/v1/relay/health', headers: { ...headers, ...json }, body: body ?? '' }
  })
  const before = await cpuMicrosOfFamily(stack.serverPids.postgres)
  const reading = await throughput({
    ...api,
    connections: loadConnections,
    seconds: loadSeconds,
    // A share of the sessions each: preparing all of them for every connection would take longer than a response may.
    requestsOf: (connection) => requests.filter((_, index) => index % loadConnections === connection),
  })
  const postgres = (await cpuMicrosOfFamily(stack.serverPids.postgres)) - before
  const reports = (reading['per second'] ?? Number.NaN) * loadSeconds
  return { report_cpu_api: reading['µs CPU each'] ?? Number.NaN, report_cpu_postgres: postgres / reports }
}

/** Starts of one caller, each stopped at once when all are measured, until their workflows have ended. */
async function readStartCosts(bench: GrowthBench) {
  const { api, starters } = bench
  const users = starters.splice(0, startCalls)
  let reading: Reading = {}
  const used = await cpuOf(bench, async () => {
    reading = await callAll(
      users.map((user) => startCall(api, user)),
      1,
      api.pid,
    )
    await stopSessions(bench, users)
  })
  logProgress(`POST /relay/start: p50 ${reading['p50 ms']?.toFixed(1)} ms, p99 ${reading['p99 ms']?.toFixed(1)} ms`)
  return {
    start_p50: reading['p50 ms'] ?? Number.NaN,
    start_p99: reading['p99 ms'] ?? Number.NaN,
    start_cpu_api: used.api / users.length,
    start_cpu_worker: used.worker / users.length,
    start_cpu_postgres: used.postgres / users.length,
    start_cpu_temporal: used.temporal / users.length,
  }
}

async function stopSessions({ api, stack }: GrowthBench, users: readonly BenchUser[]): Promise<void> {
  const userIds = users.map(({ userId }) => userId)
  const sessions = await stack.sql<{ id: string; userId: string }[]>`
    select id, user_id from relay_sessions where user_id = any(${userIds}::uuid[])`
  for (const { id, userId } of sessions) {
    const authorization = users.find((user) => user.userId === userId)?.bearer ?? ''
    const body = JSON.stringify({ session_id: id, immediate: true })
    await call({ method: 'POST', url: `${api.url}/api/v1/relay/stop`, headers: { authorization }, body })
  }
  await waitUntil('all started sessions are stopped', async () => {
    const [left] = await stack.sql`
      select from relay_sessions where user_id = any(${userIds}::uuid[]) and state <> 'stopped' limit 1`
    return left === undefined
  })
}

/** Microseconds of CPU time of each program while the work is done. */
async function cpuOf({ api, worker, stack }: GrowthBench, work: () => Promise<unknown>) {
  const read = async () => ({
    api: await cpuMicros(api.pid),
    worker: await cpuMicros(worker.pid),
    postgres: await cpuMicrosOfFamily(stack.serverPids.postgres),
    temporal: await cpuMicros(stack.serverPids.temporal),
  })
  const before = await read()
  await work()
  const after = await read()
  return {
    api: after.api - before.api,
    worker: after.worker - before.worker,
    postgres: after.postgres - before.postgres,
    temporal: after.temporal - before.temporal,
  }
}

async function readHistoryEvents({ stack, sessionIds }: GrowthBench): Promise<number> {
  const lengths = await Promise.all(
    sample(sessionIds).map(async (id) => {
      const handle = stack.temporal.workflow.getHandle(messages.relaySessionWorkflowId(id))
      return (await handle.describe()).historyLength
    }),
  )
  return lengths.reduce((sum, length) => sum + length, 0) / lengths.length
}
