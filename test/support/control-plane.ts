/** A control plane in which Temporal, Postgres, api and worker can fail separately. Relays are real processes. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { type EmbeddedTemporal, startEmbeddedTemporal } from '../../platform/embedded/temporal.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import { createLog } from '../../platform/log.ts'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { type Answer, Client, createDatabase, type GivenUser, givenAccounts, givePlan } from './api.ts'
import { atEnd } from './at-end.ts'
import { testEnvironment } from './environment.ts'
import { runJob } from './jobs.ts'
import { findFreePort } from './ports.ts'
import { type Program, startProgram, untilWell } from './programs.ts'
import {
  eventually,
  type History,
  type OneSession,
  operator,
  operatorPassword,
  passageTo,
  relayProcesses,
  shortTimes,
} from './relays.ts'

export interface ControlPlane {
  readonly client: Client
  /** The variables of api and worker. */
  readonly environment: Readonly<Record<string, string>>
  /** Signs the sandbox's webhooks. */
  readonly webhookSecret: string
  readonly api: Program
  readonly worker: Program
  /** Not through the proxy. */
  readonly sql: Database
  /** The proxy between both programs and Postgres. */
  readonly postgres: { block(): Promise<void>; open(): Promise<void> }
  /** The proxy between the relays and the api. */
  readonly reports: { block(): Promise<void>; open(): Promise<void> }
  readonly temporal: {
    readonly address: string
    stop(): Promise<void>
    start(): Promise<void>
    deleteStore(): void
  }
  relays(): ReturnType<typeof relayProcesses>
  user(): Promise<GivenUser>
  paidUser(): Promise<PaidUser>
  /** Resolves after a run of the background job that begins after the call. */
  runJob(name: string): Promise<void>
  history(sessionId: string): Promise<History>
  untilState(sessionId: string, state: string): Promise<History>
}

export interface PaidUser {
  start(body?: object, key?: string): Promise<Answer<OneSession>>
  stop(immediate?: boolean): Promise<Answer<OneSession>>
}

/**
 * Starts the service for the tests of a file, and ends all processes after them.
 * @param variables of api and worker, beside short times.
 */
export async function startControlPlane(variables: Readonly<Record<string, string>> = {}): Promise<ControlPlane> {
  const dataDir = mkdtempSync(join(tmpdir(), 'relay-outage-'))
  const database = await createDatabase()
  const postgres = await passageTo(database.url)
  const sql = connectPostgres(database.url, 2)
  const temporal = await startTemporal(dataDir)
  atEnd(async () => {
    await endLocalRelays(dataDir)
    await temporal.stop()
    await sql.end({ timeout: 5 })
    await database.drop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const port = await findFreePort()
  const reports = await passageTo(`http://127.0.0.1:${port}`)
  const env = testEnvironment({
    ...shortTimes,
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '10',
    PORT: String(port),
    SVC_API_URL: new URL(reports.url).origin,
    DATABASE_URL: postgres.url,
    TEMPORAL_ADDRESS: temporal.address,
    SVC_DATA_DIR: dataDir,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
    ...variables,
  })
  const [api, worker] = [startProgram('api', env), startProgram('worker', env)]
  const client = new Client(`http://127.0.0.1:${port}`)
  await untilWell(client.url)
  const { user } = givenAccounts(env, sql)
  const history = async (sessionId: string) =>
    (await client.get<History>(`/admin/sessions/${sessionId}`, { headers: operator })).body
  return {
    client,
    sql,
    api,
    worker,
    postgres,
    reports,
    temporal,
    user,
    history,
    environment: env,
    webhookSecret: env.SVC_BILLING_WEBHOOK_SECRET ?? '',
    relays: () => relayProcesses(dataDir),
    paidUser: async () => {
      const { userId, bearer } = await user()
      await givePlan(sql, userId)
      return paidUser(client, bearer)
    },
    runJob: (name) => runJob(sql, name),
    untilState: (sessionId, state) =>
      eventually(
        () => history(sessionId),
        ({ session }) => session?.state === state,
      ),
  }
}

async function startTemporal(dataDir: string) {
  const { embedded, searchPath, cacheDir } = readStackConfig()
  const sources = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: () => {} }
  const executable = await findTemporalCli(sources)
  const [port, dir] = [await findFreePort(), join(dataDir, 'temporal')]
  const start = () =>
    startEmbeddedTemporal({ executable, dir, port: async () => port, log: createLog('test', 'fatal') })
  let running: EmbeddedTemporal = await start()
  return {
    address: running.address,
    stop: () => running.stop(),
    start: async () => {
      running = await start()
    },
    deleteStore: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const paidUser = (client: Client, bearer: string): PaidUser => ({
  start: (body = {}, key = randomUUID()) =>
    client.post<OneSession>('/relay/start', body, { bearer, headers: { 'Idempotency-Key': key } }),
  stop: (immediate = true) =>
    client.post<OneSession>('/relay/stop', { connection_id: 'default', immediate }, { bearer }),
})
