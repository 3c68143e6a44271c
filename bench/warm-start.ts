/**
 * How long a streamer waits for a relay of the local provider: with a warm instance, and without one. The floor of the
 * first is one API call and one report that completes provisioning, each measured by itself.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { findRelaySession } from '../db/relay/sessions.ts'
import { endLocalRelays } from '../providers/relay/local-relays.ts'
import { type BenchUser, insertUsers } from './data.ts'
import { figures } from './figures.ts'
import { call } from './load.ts'
import { measurePairs, median, type Reading } from './pairs.ts'
import { compare, type Row, single } from './rows.ts'
import {
  region as idleRegion,
  logProgress,
  type RunningProgram,
  type Stack,
  waitUntil,
  waitUntilAnswering,
} from './stack.ts'
import { healthReport } from './throughput.ts'

const callsPerRound = 6
const coldStarts = 12
const warm = 3

const local = { display_name: 'Bench', provider: 'local' }
const relayRegions = [
  { ...local, region: 'cold', capacity: 50 },
  { ...local, region: 'warm', capacity: 50, warm },
]
/** The worker never finds room for an instance in the idle region, so a start there costs nothing but the API call. */
const regionsOf = (idleCapacity: number) =>
  JSON.stringify([{ ...local, region: idleRegion, capacity: idleCapacity, default: true }, ...relayRegions])

interface WarmBench {
  readonly stack: Stack
  readonly api: RunningProgram
  readonly users: BenchUser[]
}

export async function measureWarmStart(stack: Stack, rounds: number): Promise<Row[]> {
  const variables = { SVC_TEMPORAL_TASK_QUEUE: 'bench-warm', SVC_RELAY_STOP_GRACE_SECONDS: '1' }
  const api = await stack.start('api/server.ts', { ...variables, SVC_REGIONS: regionsOf(100_000) })
  const worker = await stack.start('activities/worker/worker.ts', {
    ...variables,
    SVC_REGIONS: regionsOf(0),
    // Where the relays report to.
    SVC_API_URL: api.url,
  })
  await waitUntilAnswering(api, '/health')
  // Those of other measurements may have as many live relays as their plan allows.
  const users = await insertUsers(stack, (rounds + 1) * callsPerRound * 2 + coldStarts, 'w')
  const bench = { stack, api, users }
  const pairs = await measurePairs({
    what: 'warm start',
    rounds,
    floor: () => repeat(callsPerRound, () => callAndReport(bench)),
    ours: () => repeat(callsPerRound, () => startUntilActive(bench, 'warm')),
  })
  const cold = await repeat(coldStarts, () => startUntilActive(bench, 'cold'))
  await Promise.all([api.stop(), worker.stop()])
  // Relays survive their worker.
  await endLocalRelays(worker.config.dataDir)
  return [
    compare(figures.warm_start_p50, pairs, 'p50 ms'),
    single(figures.cold_start_p50, cold['p50 ms'] ?? Number.NaN),
  ]
}

async function repeat(count: number, measure: () => Promise<number>): Promise<Reading> {
  const waits: number[] = []
  for (let index = 0; index < count; index += 1) waits.push(await measure())
  return { 'p50 ms': median(waits) }
}

const headersOf = ({ bearer }: BenchUser) => ({ authorization: bearer, 'idempotency-key': randomUUID() })

async function startIn({ api, users }: WarmBench, region: string): Promise<{ sessionId: string; user: BenchUser }> {
  const user = users.pop()
  if (!user) throw new Error('there are no more users')
  const body = JSON.stringify({ connection_id: `start-${region}`, region })
  const answer = await call({ method: 'POST', url: `${api.url}/api/v1/relay/start`, headers: headersOf(user), body })
  const { session } = JSON.parse(answer) as { session: { session_id: string } }
  return { sessionId: session.session_id, user }
}

const waitUntilActive = async ({ stack }: WarmBench, sessionId: string): Promise<void> => {
  while ((await findRelaySession(stack.sql, sessionId))?.state !== 'active') await sleep(1)
}

/** An API call, and a report that makes its session active. */
async function callAndReport(bench: WarmBench): Promise<number> {
  const { stack, api } = bench
  const callStartedAt = performance.now()
  const { sessionId } = await startIn(bench, idleRegion)
  const callMillis = performance.now() - callStartedAt
  await stack.sql`update relay_sessions set instance_id = ${`fake-${sessionId}`} where id = ${sessionId}`
  await sleep(300)
  const reportedAt = performance.now()
  const headers = { 'x-relay-auth': api.config.relayAuthSecrets[0] ?? '' }
  const url = `${api.url}/api/v1/relay/health`
  await Promise.all([
    call({ method: 'POST', url, headers, body: healthReport(sessionId) }),
    waitUntilActive(bench, sessionId),
  ])
  return callMillis + performance.now() - reportedAt
}

async function startUntilActive(bench: WarmBench, region: string): Promise<number> {
  const { stack, api } = bench
  if (region === 'warm') await waitUntil('warm instances are ready', () => hasWarmInstances(stack), 120)
  await sleep(500)
  const startedAt = performance.now()
  const { sessionId, user } = await startIn(bench, region)
  await waitUntilActive(bench, sessionId)
  const millis = performance.now() - startedAt
  logProgress(`${region} start: ${Math.round(millis)} ms`)
  const body = JSON.stringify({ session_id: sessionId, immediate: true })
  await call({ method: 'POST', url: `${api.url}/api/v1/relay/stop`, headers: headersOf(user), body })
  return millis
}

const hasWarmInstances = async ({ sql }: Stack): Promise<boolean> =>
  (
    await sql`
      select from instances where is_warm and session_id is null and last_report_at is not null
        and retired_at is null and gone_at is null`
  ).count === warm
