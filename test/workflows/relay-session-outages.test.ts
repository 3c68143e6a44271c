import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { readStackConfig } from '../../platform/config.ts'
import { type EmbeddedTemporal, startEmbeddedTemporal } from '../../platform/embedded/temporal.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import { createLog } from '../../platform/log.ts'
import { endAllLocalRelays } from '../../providers/relay/local.ts'
import { Client, createDatabase, highLimits, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { type Program, startProgram, untilWell } from '../support/programs.ts'
import {
  eventually,
  freePort,
  type History,
  type OneSession,
  operator,
  operatorPassword,
  relayProcesses,
  shortTimes,
} from '../support/relays.ts'

let dataDir: string
let client: Client
let temporal: EmbeddedTemporal
let startTemporal: () => Promise<EmbeddedTemporal>
let api: Program
let worker: Program

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'relay-outage-'))
  const { embedded, searchPath, cacheDir } = readStackConfig()
  const executable = await findTemporalCli({
    explicit: embedded.temporalCli,
    searchPath,
    dataDir,
    cacheDir,
    progress: () => {},
  })
  const temporalPort = await freePort()
  startTemporal = () =>
    startEmbeddedTemporal({
      executable,
      dir: join(dataDir, 'temporal'),
      port: async () => temporalPort,
      log: createLog('test', 'fatal'),
    })
  temporal = await startTemporal()
  const database = await createDatabase()
  const port = await freePort()
  const env = {
    ...shortTimes,
    PORT: String(port),
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: temporal.address,
    SVC_DATA_DIR: dataDir,
    SVC_JWT_SECRET: randomBytes(48).toString('base64'),
    SVC_RELAY_AUTH_SECRET: randomBytes(48).toString('base64url'),
    OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    SVC_BILLING_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
    SVC_RATE_LIMITS: highLimits(),
  }
  atEnd(async () => {
    await endAllLocalRelays(dataDir)
    await temporal.stop()
    await database.drop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  api = startProgram('api', env)
  worker = startProgram('worker', env)
  client = new Client(`http://127.0.0.1:${port}`)
  await untilWell(client.url)
}, 90_000)

async function paidUser() {
  const user = await signUp(client)
  await client.post(`/admin/users/${user.userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
  const asking = { bearer: user.bearer, headers: { 'Idempotency-Key': randomUUID() } }
  return {
    start: () =>
      client.post<OneSession>('/relay/start', {}, { ...asking, headers: { 'Idempotency-Key': randomUUID() } }),
    stop: (immediate = true) => client.post<OneSession>('/relay/stop', { connection_id: 'default', immediate }, asking),
  }
}

const history = async (sessionId: string) =>
  (await client.get<History>(`/admin/sessions/${sessionId}`, { headers: operator })).body
const untilState = (sessionId: string, state: string) =>
  eventually(
    () => history(sessionId),
    ({ session }) => session?.state === state,
    40,
  )

describe('while Temporal is away', () => {
  test('a start is accepted, and carried out when it is back', async () => {
    const user = await paidUser()
    await temporal.stop()
    const { status, body } = await user.start()
    expect(status).toBe(201)
    const health = await fetch(`${client.url}/health`)
    expect(health.status).toBe(503)
    temporal = await startTemporal()
    await untilState(body.session.session_id, 'active')
    expect(relayProcesses(dataDir)).toHaveLength(1)
    await user.stop()
    await untilState(body.session.session_id, 'stopped')
  }, 90_000)

  test('a stop is accepted, and carried out when it is back', async () => {
    const user = await paidUser()
    const { session } = (await user.start()).body
    await untilState(session.session_id, 'active')
    await temporal.stop()
    const began = Date.now()
    const { status, body } = await user.stop()
    expect(status).toBe(200)
    expect(body.session.state).toBe('active')
    expect(Date.now() - began).toBeLessThan(4000)
    temporal = await startTemporal()
    await untilState(session.session_id, 'stopped')
    await eventually(
      () => relayProcesses(dataDir),
      (all) => all.length === 0,
    )
  }, 90_000)

  test('a start that takes a stop back wins, whatever arrives first', async () => {
    const user = await paidUser()
    const { session } = (await user.start()).body
    await untilState(session.session_id, 'active')
    await temporal.stop()
    await user.stop()
    const again = await user.start()
    expect(again.body.session.session_id).toBe(session.session_id)
    temporal = await startTemporal()
    await untilState(session.session_id, 'active')
    await sleep(6000)
    expect(await history(session.session_id)).toMatchObject({
      session: { state: 'active' },
      transitions: [{ to: 'active' }],
    })
    await user.stop()
    await untilState(session.session_id, 'stopped')
  }, 90_000)
})

describe('when Temporal comes back without its histories', () => {
  test('a live session gets a new actor as soon as it is needed, and its stop is carried out', async () => {
    const user = await paidUser()
    const { session } = (await user.start()).body
    await untilState(session.session_id, 'active')
    await temporal.stop()
    rmSync(join(dataDir, 'temporal'), { recursive: true, force: true })
    temporal = await startTemporal()
    await untilWell(client.url)
    await worker.kill()
    worker.start()
    expect((await user.stop()).status).toBe(200)
    await untilState(session.session_id, 'stopped')
    await eventually(
      () => relayProcesses(dataDir),
      (all) => all.length === 0,
    )
  }, 90_000)
})

describe('while the control plane is away', () => {
  test('no relay loses its health, though nobody could hear it for longer than the timeout', async () => {
    const user = await paidUser()
    const { session } = (await user.start()).body
    await untilState(session.session_id, 'active')
    const running = relayProcesses(dataDir)
    await api.kill()
    await sleep(8000)
    api.start()
    await untilWell(client.url)
    await sleep(4000)
    expect(await history(session.session_id)).toMatchObject({
      session: { state: 'active' },
      transitions: [{ to: 'active' }],
    })
    expect(relayProcesses(dataDir)).toEqual(running)
    await user.stop()
    await untilState(session.session_id, 'stopped')
  }, 90_000)

  test('a grace that ends while no worker runs is ended by the next one', async () => {
    const user = await paidUser()
    const { session } = (await user.start()).body
    await untilState(session.session_id, 'active')
    await user.stop(false)
    await worker.kill()
    await sleep(4000)
    expect((await history(session.session_id)).session.state).toBe('grace')
    worker.start()
    await untilState(session.session_id, 'stopped')
    await eventually(
      () => relayProcesses(dataDir),
      (all) => all.length === 0,
    )
  }, 90_000)
})
