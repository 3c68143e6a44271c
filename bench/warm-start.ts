/**
 * How long a streamer waits for a relay of the local provider. With a warm instance it admits the encoder as soon as it
 * has its assignment, whose floor is one API call and one report; the session is read as active later, since that
 * contains the first task of its workflow.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { findRelaySession } from '../db/relay/sessions.ts'
import { endLocalRelays } from '../providers/relay/local-relays.ts'
import { conclusion, handshake, read } from '../test/support/srt-packets.ts'
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
/** The reply of a relay whose gate does not know the stream id. */
const unauthorized = 2401

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
  const users = await insertUsers(stack, ((rounds + 1) * 2 + 1) * callsPerRound + coldStarts, 'w')
  const bench = { stack, api, users }
  const pairs = await measurePairs({
    what: 'warm start',
    rounds,
    floor: () => repeat(callsPerRound, () => callAndReport(bench)),
    ours: () => repeat(callsPerRound, () => startUntilAdmitted(bench)),
  })
  const active = await repeat(callsPerRound, () => startUntilActive(bench, 'warm'))
  const cold = await repeat(coldStarts, () => startUntilActive(bench, 'cold'))
  await Promise.all([api.stop(), worker.stop()])
  // Relays survive their worker.
  await endLocalRelays(worker.config.dataDir)
  return [
    compare(figures.warm_start_p50, pairs, 'p50 ms'),
    single(figures.warm_active_p50, active['p50 ms'] ?? Number.NaN),
    single(figures.cold_start_p50, cold['p50 ms'] ?? Number.NaN),
  ]
}

async function repeat(count: number, measure: () => Promise<number>): Promise<Reading> {
  const waits: number[] = []
  for (let index = 0; index < count; index += 1) waits.push(await measure())
  return { 'p50 ms': median(waits) }
}

const headersOf = ({ bearer }: BenchUser) => ({ authorization: bearer, 'idempotency-key': randomUUID() })

interface Started {
  readonly sessionId: string
  readonly user: BenchUser
  /** Empty without a warm instance. */
  readonly srtUrl: string
}

async function startIn({ api, users }: WarmBench, region: string): Promise<Started> {
  const user = users.pop()
  if (!user) throw new Error('there are no more users')
  const body = JSON.stringify({ connection_id: `start-${region}`, region })
  const answer = await call({ method: 'POST', url: `${api.url}/api/v1/relay/start`, headers: headersOf(user), body })
  const { session } = JSON.parse(answer) as { session: { session_id: string; connect: { srt_url: string } | null } }
  return { sessionId: session.session_id, user, srtUrl: session.connect?.srt_url ?? '' }
}

const waitUntilActive = async ({ stack }: WarmBench, sessionId: string): Promise<void> => {
  while ((await findRelaySession(stack.sql, sessionId))?.state !== 'active') await sleep(1)
}

/** An API call, and a report. */
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
  await call({ method: 'POST', url, headers, body: healthReport(sessionId) })
  return callMillis + performance.now() - reportedAt
}

/** From the answer to a start on a warm instance until its relay admits the publisher that the answer names. */
async function startUntilAdmitted(bench: WarmBench): Promise<number> {
  await waitUntil('warm instances are ready', () => hasWarmInstances(bench.stack), 120)
  await sleep(500)
  const { sessionId, user, srtUrl } = await startIn(bench, 'warm')
  const answeredAt = performance.now()
  const { hostname, port, searchParams } = new URL(srtUrl)
  const caller = await openCaller(hostname, Number(port))
  // More calls of one address would not be answered.
  while (!(await caller.isAdmitted(searchParams.get('streamid') ?? ''))) await sleep(4)
  const millis = performance.now() - answeredAt
  caller.close()
  logProgress(`warm start until admitted: ${millis.toFixed(1)} ms`)
  await stopNow(bench, sessionId, user)
  return millis
}

/** A caller that makes handshakes of SRT, one after the other. */
async function openCaller(host: string, port: number) {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const ask = async (packet: Buffer) => {
    const reply = once(socket, 'message', { signal: AbortSignal.timeout(2_000) })
    socket.send(packet, port, host)
    return read((await reply)[0] as Buffer)
  }
  return {
    isAdmitted: async (streamId: string): Promise<boolean> => {
      const socketId = randomInt(1, 2 ** 30)
      const { cookie } = await ask(handshake({ socketId, version: 4 }))
      return (await ask(conclusion({ socketId, cookie, streamId }))).type !== unauthorized
    },
    close: () => socket.close(),
  }
}

async function startUntilActive(bench: WarmBench, region: string): Promise<number> {
  if (region === 'warm') await waitUntil('warm instances are ready', () => hasWarmInstances(bench.stack), 120)
  await sleep(500)
  const startedAt = performance.now()
  const { sessionId, user } = await startIn(bench, region)
  await waitUntilActive(bench, sessionId)
  const millis = performance.now() - startedAt
  logProgress(`${region} start: ${Math.round(millis)} ms`)
  await stopNow(bench, sessionId, user)
  return millis
}

async function stopNow({ api }: WarmBench, sessionId: string, user: BenchUser): Promise<void> {
  const body = JSON.stringify({ session_id: sessionId, immediate: true })
  await call({ method: 'POST', url: `${api.url}/api/v1/relay/stop`, headers: headersOf(user), body })
}

const hasWarmInstances = async ({ sql }: Stack): Promise<boolean> =>
  (
    await sql`
      select from instances where is_warm and session_id is null and last_report_at is not null
        and retired_at is null and gone_at is null`
  ).count === warm
