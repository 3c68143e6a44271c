/**
 * How long a streamer waits for a relay of the local provider. With a warm instance its gate admits a sender as soon as
 * the relay has its assignment. The floor of that is one API call and one held report, each measured by itself.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findRelaySession } from '../db/relay/sessions.ts'
import { endLocalRelays, relayFolderOf } from '../providers/relay/local-relays.ts'
import { fakeInstanceId } from '../test/support/fake-relay-provider.ts'
import { type BenchUser, insertActiveSessions, insertUsers } from './data.ts'
import { figures } from './figures.ts'
import { call } from './load.ts'
import { measurePairs, median, type Reading } from './pairs.ts'
import { compare, type Row, single } from './rows.ts'
import { openConnection } from './sender.ts'
import {
  region as idleRegion,
  logProgress,
  type RunningProgram,
  type Stack,
  waitUntil,
  waitUntilAnswering,
} from './stack.ts'

const callsPerRound = 6
const startsUntilActive = 12
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
  readonly worker: RunningProgram
  readonly users: BenchUser[]
}

export async function measureWarmStart(stack: Stack, rounds: number): Promise<Row[]> {
  const variables = {
    SVC_TEMPORAL_TASK_QUEUE: 'bench-warm',
    SVC_RELAY_STOP_GRACE_SECONDS: '1',
    // Sessions of the filled database do not report, and would be replaced during the measurement.
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600',
  }
  const api = await stack.start('api/server.ts', { ...variables, SVC_REGIONS: regionsOf(100_000) })
  const worker = await stack.start('activities/worker/worker.ts', {
    ...variables,
    SVC_REGIONS: regionsOf(0),
    // Where the relays report to.
    SVC_API_URL: api.url,
  })
  await waitUntilAnswering(api, '/health')
  // Those of other measurements may have as many live relays as their plan allows.
  const users = await insertUsers(stack, (rounds + 1) * callsPerRound + 2 * startsUntilActive + 2, 'w')
  const bench = { stack, api, worker, users }
  const callAndHeldReport = await prepareFloor(bench)
  const pairs = await measurePairs({
    what: 'warm start',
    rounds,
    floor: () => repeat(callsPerRound, callAndHeldReport),
    ours: () => repeat(callsPerRound, () => startUntilAdmitted(bench)),
  })
  const active = await repeat(startsUntilActive, () => startUntilActive(bench, 'warm'))
  const cold = await repeat(startsUntilActive, () => startUntilActive(bench, 'cold'))
  await Promise.all([api.stop(), worker.stop()])
  // Relays survive their worker.
  await endLocalRelays(worker.config.dataDir)
  return [
    compare(figures.warm_admission_p50, pairs, 'p50 ms'),
    single(figures.warm_start_p50, active['p50 ms'] ?? Number.NaN),
    single(figures.cold_start_p50, cold['p50 ms'] ?? Number.NaN),
  ]
}

async function repeat(count: number, measure: () => Promise<number>): Promise<Reading> {
  const waits: number[] = []
  for (let index = 0; index < count; index += 1) waits.push(await measure())
  return { 'p50 ms': median(waits) }
}

const headersOf = ({ bearer }: BenchUser) => ({ authorization: bearer, 'idempotency-key': randomUUID() })

function takeUser({ users }: WarmBench): BenchUser {
  const user = users.pop()
  if (!user) throw new Error('there are no more users')
  return user
}

interface Started {
  readonly user: BenchUser
  readonly session: {
    readonly session_id: string
    readonly instance_id: string | null
    readonly connect: { readonly srt_url: string } | null
  }
  /** Makes the same request again, which starts nothing. */
  readonly repeatRequest: () => Promise<string>
}

async function startIn(bench: WarmBench, region: string): Promise<Started> {
  const user = takeUser(bench)
  const body = JSON.stringify({ connection_id: `start-${region}`, region })
  const start = { method: 'POST', url: `${bench.api.url}/api/v1/relay/start`, headers: headersOf(user), body } as const
  const { session } = JSON.parse(await call(start)) as Pick<Started, 'session'>
  return { user, session, repeatRequest: () => call(start) }
}

const waitUntilActive = async ({ stack }: WarmBench, sessionId: string): Promise<void> => {
  while ((await findRelaySession(stack.sql, sessionId))?.state !== 'active') await sleep(1)
}

/**
 * @returns a function that measures an API call, a start that was made before, and a held report, from the moment at
 * which its instance is assigned to a session until it has the answer.
 */
async function prepareFloor(bench: WarmBench): Promise<() => Promise<number>> {
  const { stack, api } = bench
  const { repeatRequest } = await startIn(bench, idleRegion)
  const [sessionId = ''] = await insertActiveSessions(stack, [takeUser(bench).userId], idleRegion)
  const instanceId = fakeInstanceId(sessionId)
  // Only changes of warm instances are notified.
  const assign = (session: string | null) => stack.sql`
    update instances set session_id = ${session}, is_warm = ${session !== null} where instance_id = ${instanceId}`
  const report = {
    method: 'POST',
    url: `${api.url}/api/v1/relay/health`,
    headers: { 'x-relay-auth': api.config.relayAuthSecrets[0] ?? '' },
    body: JSON.stringify({ session_id: null, instance_id: instanceId, wait_seconds: 10 }),
  } as const
  return async () => {
    await assign(null)
    const held = call(report)
    await sleep(500)
    const callMillis = await millisOf(repeatRequest)
    const heldMillis = await millisOf(async () => {
      await assign(sessionId)
      if (!(await held).includes(sessionId)) throw new Error('the held report has no assignment')
    })
    return callMillis + heldMillis
  }
}

async function millisOf(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await run()
  return performance.now() - startedAt
}

/** From the answer to a start until the gate logs that it admits the sender which calls then, in whole milliseconds. */
async function startUntilAdmitted(bench: WarmBench): Promise<number> {
  await waitUntil('warm instances are ready', () => hasWarmInstances(bench.stack), 120)
  await sleep(500)
  const { user, session } = await startIn(bench, 'warm')
  const answeredAt = Date.now()
  await openConnection(session.connect?.srt_url ?? '')
  const openMillis = Date.now() - answeredAt
  const log = await readFile(join(relayFolderOf(bench.worker.config.dataDir), `${session.instance_id}.log`), 'utf8')
  const entry = log.split('\n').find((line) => line.includes('publish connection admitted'))
  const millis = Date.parse(JSON.parse(entry ?? '').time) - answeredAt
  logProgress(`warm start: admitted after ${millis} ms, open after ${openMillis} ms`)
  await stopNow(bench, session.session_id, user)
  return millis
}

async function startUntilActive(bench: WarmBench, region: string): Promise<number> {
  if (region === 'warm') await waitUntil('warm instances are ready', () => hasWarmInstances(bench.stack), 120)
  await sleep(500)
  const startedAt = performance.now()
  const { session, user } = await startIn(bench, region)
  await waitUntilActive(bench, session.session_id)
  const millis = performance.now() - startedAt
  logProgress(`${region} start: ${Math.round(millis)} ms`)
  await stopNow(bench, session.session_id, user)
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
