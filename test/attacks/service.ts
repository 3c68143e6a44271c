/**
 * The service as an attacker finds it: separate processes behind addresses. Only the set-up of a test reads its
 * database.
 */
import { join } from 'node:path'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { generateSigningKey } from '../../platform/embedded/secrets.ts'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { Client, createDatabase, type GivenUser, givePlan, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'
import { type Program, startProgram } from '../support/programs.ts'
import { eventually, operatorPassword } from '../support/relays.ts'

export interface AttackedService {
  /** Sends requests to the API. */
  readonly api: Client
  /** The address of the site; empty when none is started. */
  readonly siteUrl: string
  readonly sql: Database
  readonly dataDir: string
  /** The variables of all processes, with the secrets of the service. */
  readonly variables: Readonly<Record<string, string>>
  readonly programs: readonly Program[]
  /** Everything that the processes have logged so far, from level debug. */
  logged(): string
  /** Signs up an account with the paid plan and three add-ons. */
  paidUser(): Promise<GivenUser>
}

interface Options {
  /** Which processes are started beside the API. */
  readonly with?: readonly ('worker' | 'site')[]
  readonly variables?: Readonly<Record<string, string>>
}

const outputLengthMax = 200_000_000

/** Starts the processes, and ends them after the tests of the file. */
export async function startAttackedService(options: Options = {}): Promise<AttackedService> {
  const database = await createDatabase()
  const dataDir = await makeFolder('attacks-')
  const sql = connectPostgres(database.url, 4)
  atEnd(async () => {
    await endLocalRelays(dataDir)
    await sql.end({ timeout: 5 })
    await database.drop()
    await removeFolder(dataDir)
  })
  const [port, sitePort] = [await findFreePort(), await findFreePort()]
  const siteUrl = `http://localhost:${sitePort}`
  const variables = testEnvironment({
    LOG_LEVEL: 'debug',
    PORT: String(port),
    DATABASE_URL: database.url,
    SVC_API_URL: `http://127.0.0.1:${port}`,
    SVC_SITE_URL: siteUrl,
    SVC_SITE_PORT: String(sitePort),
    SVC_DATA_DIR: dataDir,
    SVC_WORKER_ALIVE_FILE: join(dataDir, 'worker-alive'),
    SVC_OBS_PROVIDER_ID: 'attacked-service',
    SVC_OAUTH_SIGNING_KEYS: generateSigningKey(),
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `attacks-${port}`,
    ...options.variables,
  })
  const names = ['api', ...(options.with ?? [])] as const
  const programs = names.map((name) => startProgram(name, variables, outputLengthMax))
  const api = new Client(`http://127.0.0.1:${port}`)
  const logged = () => programs.map((program) => program.output()).join('\n')
  try {
    // /health requires a worker, /readyz does not.
    await untilReady(`${api.url}/${options.with?.includes('worker') ? 'health' : 'readyz'}`)
    if (options.with?.includes('site')) await untilReady(`${siteUrl}/readyz`)
  } catch {
    throw new Error(`the service did not start:\n${logged()}`)
  }
  return {
    api,
    siteUrl,
    sql,
    dataDir,
    variables,
    programs,
    logged,
    paidUser: async () => {
      const user = await signUp(api)
      await givePlan(sql, user.userId, 3)
      return user
    },
  }
}

const untilReady = (url: string): Promise<number | undefined> =>
  eventually(
    () =>
      fetch(url).then(
        ({ status }) => status,
        () => undefined,
      ),
    (status) => status === 200,
    100,
  )
