/** The life of a relay session, against the same life on DBOS with the same guarantees. */
import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { findRelaySession } from '../db/relay/sessions.ts'
import { runCallers } from './callers.ts'
import type { BenchUser } from './data.ts'
import { call } from './load.ts'
import { measurePairs, median, type Reading } from './pairs.ts'
import { peerFigures } from './peer-figures.ts'
import { type PeerBench, peerVariables } from './peer-servers.ts'
import { report } from './relay-latency.ts'
import { compare, type Row } from './rows.ts'
import { waitUntil, waitUntilAnswering } from './stack.ts'

const livesPerRound = 12
const callers = 16
const startsPerRound = 160
const connectionId = 'peer'

/** One implementation of the life. */
interface Lives {
  /** Resolves with the id of the session once it is accepted. */
  start(user: BenchUser): Promise<string>
  /** Resolves once the instance exists, the relay has reported, and the session is read as active. */
  becomeActive(sessionId: string): Promise<void>
  /** Resolves once it is answered that the session is in grace. */
  stop(user: BenchUser, sessionId: string): Promise<void>
  /** Ends sessions without grace. Resolves when all are stopped. */
  end(sessions: readonly OwnedSession[]): Promise<void>
}

interface OwnedSession {
  readonly user: BenchUser
  readonly sessionId: string
}

export async function measureLives(bench: PeerBench): Promise<Row[]> {
  const { stack, data, rounds } = bench
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  const peer = await stack.start('bench/peers/dbos.ts', peerVariables(stack, 'dbos'))
  await waitUntilAnswering(peer, '/livez')
  const user_ids = data.users.map(({ userId }) => userId).join(',')
  await call({ method: 'POST', url: `${peer.url}/accounts`, headers: {}, body: JSON.stringify({ user_ids }) }, agent)
  const ours = createServiceLives(bench, agent)
  const queued = createDbosLives(peer.url, '/start', agent)
  const single = await measurePairs({
    what: 'one life at a time',
    rounds,
    floor: () => measureOneByOne(queued, data.users),
    ours: () => measureOneByOne(ours, data.users),
  })
  const compareStarts = (how: string, lives: Lives) =>
    measurePairs({
      what: `${callers} callers, DBOS ${how}`,
      rounds,
      floor: () => measureConcurrentStarts(lives, data.users),
      ours: () => measureConcurrentStarts(ours, data.users),
    })
  const many = await compareStarts('with a queue', queued)
  const limited = await compareStarts('with the limit', createDbosLives(peer.url, '/start-within-plan', agent))
  const unqueued = await compareStarts('without a queue', createDbosLives(peer.url, '/start-without-queue', agent))
  agent.destroy()
  await peer.stop()
  return [
    compare(peerFigures.life_start_p50, single, 'start p50 ms'),
    compare(peerFigures.life_active_p50, single, 'active p50 ms'),
    compare(peerFigures.life_stop_p50, single, 'stop p50 ms'),
    compare(peerFigures.starts_p50, many, 'p50 ms'),
    compare(peerFigures.starts_p99, many, 'p99 ms'),
    compare(peerFigures.starts_throughput, many, 'per second'),
    compare(peerFigures.starts_limited_p50, limited, 'p50 ms'),
    compare(peerFigures.starts_unqueued_p50, unqueued, 'p50 ms'),
  ]
}

async function measureOneByOne(lives: Lives, users: readonly BenchUser[]): Promise<Reading> {
  const waits = { start: [] as number[], active: [] as number[], stop: [] as number[] }
  for (const user of users.slice(-livesPerRound)) {
    const startedAt = performance.now()
    const sessionId = await lives.start(user)
    waits.start.push(performance.now() - startedAt)
    await lives.becomeActive(sessionId)
    waits.active.push(performance.now() - startedAt)
    const stoppedAt = performance.now()
    await lives.stop(user, sessionId)
    waits.stop.push(performance.now() - stoppedAt)
    await lives.end([{ user, sessionId }])
  }
  return {
    'start p50 ms': median(waits.start),
    'active p50 ms': median(waits.active),
    'stop p50 ms': median(waits.stop),
  }
}

async function measureConcurrentStarts(lives: Lives, users: readonly BenchUser[]): Promise<Reading> {
  const sessions: OwnedSession[] = []
  const reading = await runCallers(users.slice(0, startsPerRound), callers, async (user) =>
    sessions.push({ user, sessionId: await lives.start(user) }),
  )
  await lives.end(sessions)
  return reading
}

function createServiceLives({ stack, api }: PeerBench, agent: Agent): Lives {
  const post = (path: string, headers: Readonly<Record<string, string>>, body: object) =>
    call({ method: 'POST', url: `${api.url}/api/v1${path}`, headers, body: JSON.stringify(body) }, agent)
  const untilRow = async (
    sessionId: string,
    isDone: (row: { state: string; instanceId: string | null }) => boolean,
  ) => {
    for (;;) {
      const row = await findRelaySession(stack.sql, sessionId)
      if (row && isDone(row)) return
      await sleep(1)
    }
  }
  return {
    start: async ({ bearer }) => {
      const headers = { authorization: bearer, 'idempotency-key': randomUUID() }
      const answer = await post('/relay/start', headers, { connection_id: connectionId })
      return (JSON.parse(answer) as { session: { session_id: string } }).session.session_id
    },
    becomeActive: async (sessionId) => {
      await untilRow(sessionId, ({ instanceId }) => instanceId !== null)
      await Promise.all([report(api, sessionId), untilRow(sessionId, ({ state }) => state === 'active')])
    },
    stop: async ({ bearer }, sessionId) =>
      void (await post('/relay/stop', { authorization: bearer }, { session_id: sessionId })),
    end: async (sessions) => {
      await runCallers(sessions, callers, ({ user, sessionId }) =>
        post('/relay/stop', { authorization: user.bearer }, { session_id: sessionId, immediate: true }),
      )
      const ids = sessions.map(({ sessionId }) => sessionId)
      await waitUntil('all sessions are stopped', async () => {
        const left =
          await stack.sql`select from relay_sessions where id = any(${ids}::uuid[]) and state <> 'stopped' limit 1`
        return left.count === 0
      })
    },
  }
}

function createDbosLives(url: string, startPath: string, agent: Agent): Lives {
  const post = (path: string, body: object) =>
    call({ method: 'POST', url: url + path, headers: {}, body: JSON.stringify(body) }, agent)
  const untilState = (sessionId: string, state: string) => post('/wait', { session_id: sessionId, state })
  return {
    start: async ({ userId }) => {
      const ids = { user_id: userId, connection_id: connectionId, idempotency_key: randomUUID() }
      return (JSON.parse(await post(startPath, ids)) as { session_id: string }).session_id
    },
    becomeActive: async (sessionId) => {
      await untilState(sessionId, 'provisioning')
      await Promise.all([post('/ready', { session_id: sessionId }), untilState(sessionId, 'active')])
    },
    stop: async (_user, sessionId) => void (await post('/stop', { session_id: sessionId })),
    end: async (sessions) => {
      await runCallers(sessions, callers, ({ sessionId }) => post('/end', { session_id: sessionId }))
      await runCallers(sessions, callers, ({ sessionId }) => untilState(sessionId, 'stopped'))
    },
  }
}
