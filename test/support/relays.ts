/** Api and worker in this process, with relays as child processes. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createRelayProviders, type RelayProviders } from '../../activities/fleet/relay-providers.ts'
import { installRuntime } from '../../activities/worker/runtime.ts'
import { startWorker } from '../../activities/worker/start-worker.ts'
import type { RelaySocketLimits } from '../../api/live/relay-sockets.ts'
import type { SessionView } from '../../api/views/relay-session.ts'
import { connectPostgres, type QueryLimits, workerLimits } from '../../db/connection.ts'
import type { Config } from '../../platform/config/config.ts'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { type Answer, type GivenUser, givePlan, startApi, type TestApi } from './api.ts'
import { atEnd } from './at-end.ts'
import { eventually } from './eventually.ts'
import { findFreePort } from './ports.ts'

export { eventually }

export const operatorPassword = 'an operator of these tests'
export const operator = { Authorization: `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}` }

export type OneSession = { readonly session: SessionView }
export type History = {
  readonly session: SessionView
  readonly live: { readonly state: string; readonly instance_id: string | null } | null
  readonly transitions: readonly {
    readonly from: string
    readonly to: string
    readonly reason: string
    readonly initiator: string
    readonly public_reason: string | null
  }[]
  readonly workflow_id: string
}

/** Short enough to wait for, and different enough to be distinguished on a busy machine. */
export const shortTimes = {
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '20',
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: '1',
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3',
  SVC_RELAY_GRACE_SECONDS: '5',
  // Tests of replacements set it.
  SVC_RELAY_REPLACEMENT_SECONDS: '0',
  SVC_RELAY_STOP_GRACE_SECONDS: '3',
}

export interface RelayUser extends GivenUser {
  start(body?: object, key?: string): Promise<Answer<OneSession>>
  stop(body: object): Promise<Answer<OneSession>>
  active(connectionId?: string): Promise<{ session: SessionView | null; sessions: readonly SessionView[] }>
}

export interface TestService {
  readonly api: TestApi
  readonly dataDir: string
  /** The running relay processes of a session, from state files and the process table. */
  relaysOf(sessionId: string): number[]
  history(sessionId: string): Promise<History>
  user(plan?: { addons: number }): Promise<RelayUser>
  /** Starts a relay and resolves when it is active. */
  activeRelay(user?: RelayUser): Promise<{ user: RelayUser; session: SessionView }>
}

interface Options {
  readonly variables?: Readonly<Record<string, string>>
  /** Returns the provider that the worker uses in place of the local one. */
  readonly around?: (provider: RelayProvider, region: string) => RelayProvider
  readonly worker?: boolean
  readonly socketLimits?: Partial<RelaySocketLimits>
  readonly queryLimits?: QueryLimits
}

/** Starts the service for the tests of a file, and ends all processes after them. */
export async function startService({
  variables = {},
  around,
  worker = true,
  socketLimits,
  queryLimits,
}: Options = {}): Promise<TestService> {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-test-'))
  atEnd(async () => {
    await endLocalRelays(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  })
  const environment = {
    ...shortTimes,
    PORT: String(await findFreePort()),
    SVC_DATA_DIR: dataDir,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
    ...variables,
  }
  const api = await startApi(environment, {
    ...(socketLimits ? { sockets: socketLimits } : {}),
    ...(queryLimits ? { queries: queryLimits } : {}),
  })
  if (worker) await startTestWorker(api, around)
  return createService(api, dataDir)
}

let hasRuntime = false

/** Must be called before the first use of the Temporal SDK's native module in this process. */
export function installRuntimeOnce(): void {
  if (!hasRuntime) installRuntime(createLog('worker', 'fatal'))
  hasRuntime = true
}

/**
 * Starts a worker in this process. It ends after the tests of the file, or earlier when the test stops it.
 * @param workerVersion of a versioned worker; none by default.
 */
export async function startTestWorker(
  api: TestApi,
  around?: (provider: RelayProvider, region: string) => RelayProvider,
  workerVersion: Config['workerVersion'] = null,
): Promise<Lifecycle> {
  const log = createLog('worker', 'fatal')
  installRuntimeOnce()
  const life = new Lifecycle(log)
  const config = { ...api.services.config, workerVersion }
  const sql = life.hold('database', connectPostgres(config.database.url, 5, workerLimits), (it) =>
    it.end({ timeout: 5 }),
  )
  const real = await createRelayProviders(config, log)
  const providers: RelayProviders = around
    ? new Map([...real].map(([region, provider]) => [region, around(provider, region)]))
    : real
  await startWorker({
    config,
    log,
    sql,
    life,
    providers,
    onFailure: (error) => {
      throw error
    },
  })
  atEnd(() => life.stop())
  return life
}

function createService(api: TestApi, dataDir: string): TestService {
  const service: TestService = {
    api,
    dataDir,
    relaysOf: (sessionId) =>
      relayProcesses(dataDir)
        .filter((relay) => relay.sessionId === sessionId)
        .map((relay) => relay.pid),
    history: async (sessionId) => (await api.get<History>(`/admin/sessions/${sessionId}`, { headers: operator })).body,
    user: async (plan = { addons: 3 }) => {
      const user = await api.given.user()
      await givePlan(api.sql, user.userId, plan.addons)
      const bearer = { bearer: user.bearer }
      return {
        ...user,
        start: (body = {}, key = randomUUID()) =>
          api.post<OneSession>('/relay/start', body, { ...bearer, headers: { 'Idempotency-Key': key } }),
        stop: (body) => api.post<OneSession>('/relay/stop', body, bearer),
        active: async (connectionId) =>
          (
            await api.get<Awaited<ReturnType<RelayUser['active']>>>(
              `/relay/active${connectionId ? `?connection_id=${connectionId}` : ''}`,
              bearer,
            )
          ).body,
      }
    },
    activeRelay: async (given) => {
      const user = given ?? (await service.user())
      const { session } = (await user.start()).body
      return {
        user,
        session: await eventually(
          () => sessionOf(user, session.session_id),
          (current) => current.state === 'active',
        ),
      }
    },
  }
  return service
}

async function sessionOf(user: RelayUser, sessionId: string): Promise<SessionView> {
  const found = (await user.active()).sessions.find(({ session_id }) => session_id === sessionId)
  if (!found) throw new Error(`${sessionId} is not among the live sessions`)
  return found
}

interface RelayProcess {
  readonly pid: number
  readonly instanceId: string
  /** Undefined for a warm relay, which learns its session from the API. */
  readonly sessionId: string | undefined
}

/** The relay processes of a data folder, from the process table. */
export function relayProcesses(dataDir: string): RelayProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
        const isOurs =
          args.some((arg) => arg.startsWith(dataDir)) && args.some((arg) => arg.endsWith('relay-node/main.ts'))
        const argumentOf = (option: string) => (args.includes(option) ? args[args.indexOf(option) + 1] : undefined)
        const relay = { instanceId: argumentOf('--instance') ?? '', sessionId: argumentOf('--session') }
        return isOurs ? [{ pid: Number(name), ...relay }] : []
      } catch {
        return []
      }
    })
}

/** Stops a process with SIGSTOP, like a hanging machine. It continues after the test or on `thaw`. */
export function freeze(pid: number): { thaw(): void } {
  process.kill(pid, 'SIGSTOP')
  const thaw = () => {
    try {
      process.kill(pid, 'SIGCONT')
    } catch {
      // The process has exited.
    }
  }
  onTestFinished(thaw)
  return { thaw }
}

export interface Passage {
  readonly url: string
  /** Closes all connections, and refuses new ones until `open`. */
  block(): Promise<void>
  open(): Promise<void>
  /** Behaves like a vanished host: connections stay open, and no data passes through them or through new ones. */
  silence(): void
  /** Passes data of new connections again, and never of silenced ones. */
  answer(): void
}

/** Starts a TCP proxy that can be blocked. */
export async function passageTo(url: string): Promise<Passage> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((from) => {
    if (isSilent) {
      sockets.add(from.on('error', () => {}).on('close', () => sockets.delete(from)))
      return
    }
    const to = connect(Number(target.port), target.hostname)
    for (const [socket, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(socket)
          other.destroy()
        })
    }
    from.pipe(to).pipe(from)
  })
  const port = await findFreePort()
  const open = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const block = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  await open()
  atEnd(block)
  const through = new URL(url)
  through.host = `127.0.0.1:${port}`
  const silence = () => {
    isSilent = true
    for (const socket of sockets) socket.unpipe().pause()
  }
  const answer = () => {
    isSilent = false
  }
  return { url: through.href, block, open, silence, answer }
}
