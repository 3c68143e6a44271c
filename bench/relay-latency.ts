/** How long one caller waits for a relay session workflow: for its first task, for its activation, and for a stop. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRelaySessionTokens } from '../api/relay-session-tokens.ts'
import { markCommandDelivered } from '../db/relay/commands.ts'
import { findRelaySession, type RelaySessionRow } from '../db/relay/sessions.ts'
import { startRelay } from '../db/transactions/start-relay.ts'
import { createSealing } from '../platform/sealing.ts'
import * as messages from '../workflows/messages.ts'
import { createRelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import type { BenchData, BenchUser } from './data.ts'
import { figures } from './figures.ts'
import { call } from './load.ts'
import { measurePairs, median, type Reading } from './pairs.ts'
import { compare, type Row } from './rows.ts'
import { type RunningProgram, region, type Stack, waitUntil } from './stack.ts'
import { healthReport } from './throughput.ts'

export interface RelayBench {
  readonly stack: Stack
  readonly api: RunningProgram
  readonly data: BenchData
  /** Number of pairs, without the warm-up pair. */
  readonly rounds: number
}

const callsPerRound = 15
const stateMillisMax = 30_000

/** The same call repeatedly by one caller, with a pause in which the background work of the call ends. */
export async function measureSequentially<Item>(
  items: readonly Item[],
  wait: (item: Item) => Promise<number>,
): Promise<Reading> {
  const waits: number[] = []
  for (const item of items) {
    waits.push(await wait(item))
    await sleep(30)
  }
  return { 'p50 ms': median(waits) }
}

const take = <Item>(items: Item[]): Item[] => items.splice(0, callsPerRound)

/** Enough users for all rounds and the warm-up of both sides. */
const supply = (rounds: number): number => (rounds + 1) * 2 * callsPerRound

/** Reserves a session as the api does. Its command counts as delivered, so that only the caller delivers it. */
export async function reserve(
  { sql, config }: Stack,
  { userId, authSessionId }: BenchUser,
  connectionId: string,
): Promise<RelaySessionRow> {
  const outcome = await startRelay(sql, {
    userId,
    by: { authSessionId },
    connectionId,
    region: { named: region },
    regions: config.regions,
    warmReportSecondsMax: 30,
    rateLimit: 9_999_999,
    rateLimitKey: `relay_start:${userId}`,
    timeBank: { enforcement: 'report', hoursPerRelay: 200, trialSeconds: 0 },
    networkHash: Buffer.alloc(32),
    idempotencyKey: randomUUID(),
    requestHash: Buffer.alloc(32),
    ...createRelaySessionTokens(createSealing(config.oauthEncryptionKeys)),
  })
  if (outcome.type !== 'reserved') throw new Error(`a new session was not reserved: ${outcome.type}`)
  await markCommandDelivered(sql, outcome.session.id, 1)
  return outcome.session
}

const post = (api: RunningProgram, path: string, headers: Readonly<Record<string, string>>, body: string) =>
  call({ method: 'POST', url: `${api.url}/api/v1${path}`, headers, body })

export const report = (api: RunningProgram, sessionId: string): Promise<string> =>
  post(api, '/relay/health', { 'x-relay-auth': api.config.relayAuthSecrets[0] ?? '' }, healthReport(sessionId))

export async function measureFirstTask({ stack, api, data, rounds }: RelayBench): Promise<Row[]> {
  const { taskQueue } = api.config.temporal
  const workflows = createRelaySessionWorkflows(stack.temporal, {
    taskQueue,
    settings: api.config.relay,
    callMillisMax: 10_000,
    findMaskedEmail: async () => null,
  })
  const users = data.users.slice(-supply(rounds))
  const connectionId = 'first-task'
  const pairs = await measurePairs({
    what: 'first task',
    rounds,
    floor: async () => {
      const sessions = await Promise.all(take(users).map((user) => reserve(stack, user, connectionId)))
      return measureSequentially(sessions, async (session) => {
        const startedAt = Date.now()
        await workflows.deliver({ ...session, commandDeliveredSeq: 0 })
        return (await firstTaskDoneAt(stack, session.id)) - startedAt
      })
    },
    ours: () =>
      measureSequentially(take(users), async ({ bearer }) => {
        const headers = { authorization: bearer, 'idempotency-key': randomUUID() }
        const answer = await post(api, '/relay/start', headers, JSON.stringify({ connection_id: connectionId }))
        const answeredAt = Date.now()
        const { session } = JSON.parse(answer) as { session: { session_id: string } }
        return (await firstTaskDoneAt(stack, session.session_id)) - answeredAt
      }),
  })
  return [compare(figures.first_task_p50, pairs, 'p50 ms')]
}

/** When the first workflow task was done, by the clock of the Temporal server, which runs on this machine. */
async function firstTaskDoneAt({ temporal }: Stack, sessionId: string): Promise<number> {
  let doneAt = 0
  const handle = temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
  await waitUntil('the first workflow task is done', async () => {
    const { events } = await handle.fetchHistory().catch(() => ({ events: [] }))
    const done = events?.find((event) => event.workflowTaskCompletedEventAttributes)?.eventTime
    doneAt = done ? Number(done.seconds) * 1000 + (done.nanos ?? 0) / 1e6 : 0
    return doneAt > 0
  })
  return doneAt
}

/** Starts sessions. Resolves when their workflows run and their instances are bound; no instance has reported yet. */
async function provisionSessions(
  { stack, api, data, rounds }: RelayBench,
  connectionId: string,
): Promise<OwnedSession[]> {
  const owned: OwnedSession[] = []
  for (const user of data.users.slice(-supply(rounds))) {
    const headers = { authorization: user.bearer, 'idempotency-key': randomUUID() }
    const answer = await post(api, '/relay/start', headers, JSON.stringify({ connection_id: connectionId }))
    owned.push({ user, sessionId: (JSON.parse(answer) as { session: { session_id: string } }).session.session_id })
  }
  const ids = owned.map(({ sessionId }) => sessionId)
  await waitUntil('all instances are bound', async () => {
    const [left] = await stack.sql`
      select from relay_sessions where id = any(${ids}::uuid[]) and instance_id is null limit 1`
    return left === undefined
  })
  return owned
}

interface OwnedSession {
  readonly user: BenchUser
  readonly sessionId: string
}

const waitForState = async ({ sql }: Stack, sessionId: string, state: string): Promise<void> => {
  const until = Date.now() + stateMillisMax
  while ((await findRelaySession(sql, sessionId))?.state !== state) {
    if (Date.now() > until) throw new Error(`session ${sessionId} is not ${state} after ${stateMillisMax} ms`)
    await sleep(1)
  }
}

/** Without it the workflow makes no transition to active. */
const storeReport = async ({ sql }: Stack, sessionId: string): Promise<void> => {
  await sql`
    insert into relay_health (session_id, instance_id) select id, instance_id from relay_sessions where id = ${sessionId}`
}

/** The first report of a relay until its session is read as active, and the stop of the active sessions after it. */
export async function measureReadyAndStop(bench: RelayBench): Promise<Row[]> {
  const { stack, api, rounds } = bench
  const { workflow } = stack.temporal
  const handleOf = (sessionId: string) => workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
  const sessions = await provisionSessions(bench, 'stopped-later')
  const waiting = [...sessions]
  const timed = async (work: () => Promise<unknown>) => {
    const startedAt = performance.now()
    await work()
    return performance.now() - startedAt
  }
  const measureActivation = (signal: (sessionId: string) => Promise<unknown>) => () =>
    measureSequentially(take(waiting), ({ sessionId }) =>
      timed(() => Promise.all([signal(sessionId), waitForState(stack, sessionId, 'active')])),
    )
  const ready = await measurePairs({
    what: 'first report',
    rounds,
    floor: measureActivation(async (sessionId) => {
      await storeReport(stack, sessionId)
      await handleOf(sessionId).signal(messages.ready)
    }),
    ours: measureActivation((sessionId) => report(api, sessionId)),
  })
  const running = [...sessions]
  const stopped = await measurePairs({
    what: 'POST /relay/stop',
    rounds,
    floor: () =>
      measureSequentially(take(running), ({ sessionId }) =>
        timed(() =>
          handleOf(sessionId).executeUpdate(messages.command, {
            args: [{ seq: 2, command: 'stop', initiator: 'user' }],
          }),
        ),
      ),
    ours: () =>
      measureSequentially(take(running), ({ user, sessionId }) =>
        timed(() =>
          post(api, '/relay/stop', { authorization: user.bearer }, JSON.stringify({ session_id: sessionId })),
        ),
      ),
  })
  return [compare(figures.relay_ready_p50, ready, 'p50 ms'), compare(figures.relay_stop_p50, stopped, 'p50 ms')]
}
