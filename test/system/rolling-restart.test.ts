/**
 * Two API processes behind a load balancer and two workers are restarted one after another while streamers use the
 * service.
 */

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { countAliveWorkers } from '../../db/operations/workers.ts'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { Client, createDatabase, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { type ForwardedRequest, type LoadBalancer, startLoadBalancer } from '../support/load-balancer.ts'
import { findFreePort } from '../support/ports.ts'
import { type Program, startProgram } from '../support/programs.ts'
import { eventually, type History, type OneSession, operator, operatorPassword } from '../support/relays.ts'

const exitSecondsMax = 30
/** How long a program may take to start on a busy machine. */
const startSecondsMax = 60

interface Deployment {
  readonly balancer: LoadBalancer
  readonly client: Client
  readonly sql: Database
  readonly apis: readonly { readonly program: Program; readonly port: number }[]
  readonly workers: readonly Program[]
}

async function startDeployment(): Promise<Deployment> {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-rolling-'))
  const database = await createDatabase()
  const sql = connectPostgres(database.url, 2)
  atEnd(async () => {
    await endLocalRelays(dataDir)
    await sql.end({ timeout: 5 })
    await database.drop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const ports = [await findFreePort(), await findFreePort()]
  const balancer = await startLoadBalancer(ports)
  atEnd(() => balancer.close())
  const env = testEnvironment({
    DATABASE_URL: database.url,
    SVC_API_URL: balancer.url,
    SVC_DATA_DIR: dataDir,
    SVC_DRAIN_SECONDS: '3',
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '1',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '20',
  })
  const apis = ports.map((port) => ({ port, program: startProgram('api', { ...env, PORT: String(port) }) }))
  const workers = [startProgram('worker', env), startProgram('worker', env)]
  const deployment = { balancer, client: new Client(balancer.url), sql, apis, workers }
  await untilComplete(deployment)
  return deployment
}

/** Resolves when all APIs are ready and both workers are alive. */
const untilComplete = ({ balancer, apis, sql }: Deployment) =>
  eventually(
    async () => ({
      apis: balancer.readyPorts().length,
      workers: await countAliveWorkers(sql),
    }),
    ({ apis: ready, workers }) => ready === apis.length && workers === 2,
    startSecondsMax,
  )

/**
 * Stops the program by SIGTERM, starts it again, and resolves when the deployment is complete.
 * @returns the seconds to its exit.
 */
async function restart(deployment: Deployment, program: Program): Promise<number> {
  const startedAt = performance.now()
  await program.stop()
  const seconds = (performance.now() - startedAt) / 1000
  program.start()
  await untilComplete(deployment)
  return seconds
}

const historyOf = async ({ client }: Deployment, sessionId: string) =>
  (await client.get<History>(`/admin/sessions/${sessionId}`, { headers: operator })).body

const untilState = (deployment: Deployment, sessionId: string, state: string) =>
  eventually(
    () => historyOf(deployment, sessionId),
    ({ session }) => session?.state === state,
    startSecondsMax,
  )

type RelayOwner = Awaited<ReturnType<typeof paidUser>>

async function paidUser({ client }: Deployment) {
  const { userId, bearer } = await signUp(client)
  await client.post(`/admin/users/${userId}/grant`, { plan_tier: 'paid', addons: 3 }, { headers: operator })
  /** Repeats a request that was refused with 503, as its Retry-After asks. */
  const start = async (): Promise<string> => {
    const headers = { 'Idempotency-Key': randomUUID() }
    const { body } = await eventually(
      () => client.post<OneSession>('/relay/start', {}, { bearer, headers }),
      ({ status }) => status !== 503,
      startSecondsMax,
    )
    return body.session.session_id
  }
  const stop = (session_id: string) =>
    eventually(
      () => client.post<OneSession>('/relay/stop', { session_id, immediate: true }, { bearer }),
      ({ status }) => status !== 503,
      startSecondsMax,
    )
  return { bearer, start, stop }
}

/**
 * Reads what a plugin reads, and starts and stops relays one after another, until `signal` aborts.
 * @returns the ended sessions.
 */
async function useService(deployment: Deployment, user: RelayOwner, signal: AbortSignal): Promise<string[]> {
  const { client } = deployment
  const ended: string[] = []
  const read = async () => {
    while (!signal.aborted) {
      await client.get('/relay/active', { bearer: user.bearer })
      await client.get('/auth/session', { bearer: user.bearer })
      await sleep(50)
    }
  }
  const startAndStop = async () => {
    while (!signal.aborted) {
      const sessionId = await user.start()
      await untilState(deployment, sessionId, 'active')
      await user.stop(sessionId)
      ended.push(sessionId)
    }
  }
  await Promise.all([read(), startAndStop()])
  return ended
}

/** 503 is honest when it says when to try again. */
const isFailed = ({ status, retryAfter }: ForwardedRequest) =>
  status >= 500 && !(status === 503 && retryAfter !== undefined)

test('a rolling restart under load fails no request, and every relay ends as its owner asked', {
  timeout: 600_000,
}, async () => {
  const deployment = await startDeployment()
  const steady = await paidUser(deployment)
  const steadySession = await steady.start()
  await untilState(deployment, steadySession, 'active')
  const loadEnd = new AbortController()
  const users = await Promise.all([1, 2, 3].map(() => paidUser(deployment)))
  const load = Promise.all(users.map((user) => useService(deployment, user, loadEnd.signal)))
  const restarts = async () => {
    const seconds: number[] = []
    for (const { program } of deployment.apis) seconds.push(await restart(deployment, program))
    for (const worker of deployment.workers) seconds.push(await restart(deployment, worker))
    return seconds
  }
  const exitSeconds = await Promise.race([restarts(), load.then(() => [])]).finally(() => loadEnd.abort())
  const ended = (await load).flat()

  expect(exitSeconds).toHaveLength(4)
  expect(exitSeconds.filter((seconds) => seconds > exitSecondsMax)).toEqual([])
  expect(deployment.balancer.forwarded.filter(isFailed)).toEqual([])
  expect(ended.length).toBeGreaterThanOrEqual(6)
  for (const sessionId of ended)
    expect((await untilState(deployment, sessionId, 'stopped')).session.reason).toBe('stop_requested')
  const { transitions } = await historyOf(deployment, steadySession)
  expect(transitions.map(({ to }) => to)).toEqual(['active'])
})
