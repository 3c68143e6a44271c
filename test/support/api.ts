/** The API in this process, with its own database. `given` creates test data with random values. */
import { randomBytes, randomUUID } from 'node:crypto'
import { inject } from 'vitest'
import { createAccessTokens } from '../../api/identity/access-tokens.ts'
import { openAuthSession, webClient } from '../../api/identity/auth-sessions.ts'
import { createPasswords } from '../../api/identity/passwords.ts'
import { createTokenSet } from '../../api/identity/token-sets.ts'
import type { RelaySocketLimits } from '../../api/live/relay-sockets.ts'
import type { Services } from '../../api/services.ts'
import { startApi as startListening } from '../../api/start-api.ts'
import type { Client as SignedInClient } from '../../db/clients.ts'
import { connectPostgres, type Database, type QueryLimits } from '../../db/connection.ts'
import { getStoredStreamToken, insertUser } from '../../db/identity/users.ts'
import { openStreamToken } from '../../db/sealed-tokens.ts'
import { readConfig } from '../../platform/config/config.ts'
import { Lifecycle } from '../../platform/lifecycle.ts'
import type { connectionLimits } from '../../platform/listener.ts'
import { createLog } from '../../platform/log.ts'
import { createSealing } from '../../platform/sealing.ts'
import { atEnd } from './at-end.ts'
import { testEnvironment } from './environment.ts'

export interface Answer<Body> {
  readonly status: number
  readonly body: Body
  readonly headers: Headers
}

export interface TokenSet {
  readonly cp_access_jwt: string
  readonly refresh_token: string
  readonly token_type: string
  readonly expires_in: number
}

export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string }
}

/** The status and the error code of a response. */
export const statusAndCode = (answer: { status: number; body: object }) => [
  answer.status,
  (answer.body as Partial<ErrorBody>).error?.code,
]

interface RequestOptions {
  readonly bearer?: string
  /** The client address of the request. */
  readonly ip?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Sends requests to paths below `/api/v1`. An empty response body counts as `{}`. */
export class Client {
  constructor(readonly url: string) {}

  get = <Body = Partial<ErrorBody>>(path: string, options?: RequestOptions) =>
    this.#send<Body>('GET', path, undefined, options)
  delete = <Body = Partial<ErrorBody>>(path: string, options?: RequestOptions) =>
    this.#send<Body>('DELETE', path, undefined, options)
  /** @param body sent as JSON; text is sent unchanged. */
  post = <Body = Partial<ErrorBody>>(path: string, body?: object | string, options?: RequestOptions) =>
    this.#send<Body>('POST', path, body, options)

  async #send<Body>(
    method: string,
    path: string,
    body: object | string | undefined,
    { bearer, ip, headers, signal }: RequestOptions = {},
  ): Promise<Answer<Body>> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}),
        ...(ip ? { 'X-Forwarded-For': ip } : {}),
        ...headers,
      },
      ...(signal ? { signal } : {}),
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }).catch((error: Error) => {
      // "fetch failed" alone says neither what was asked nor why it failed.
      throw error.cause instanceof Error
        ? new Error(`${method} ${path}: ${error.cause.message}`, { cause: error })
        : error
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Body, headers: response.headers }
  }
}

/** An account with one sign-in. */
export interface GivenUser {
  readonly userId: string
  readonly email: string
  readonly password: string
  readonly authSessionId: string
  readonly bearer: string
  readonly refreshToken: string
}

export interface TestApi extends Client {
  readonly services: Services
  readonly sql: Database
  /** All log lines of the API, from level debug. */
  readonly logged: readonly string[]
  readonly given: {
    /** Creates an account in the database like a sign-up, without the time for hashing. */
    user(): Promise<GivenUser>
    /** Adds another sign-in of the account, of a plugin with this name or else of a browser. */
    signIn(user: GivenUser, plugin?: string): Promise<GivenUser>
  }
}

/** A busy machine takes longer than the service's limits for what is about something else. */
const patientLimits: QueryLimits = {
  statementMillisMax: 60_000,
  lockMillisMax: 60_000,
  idleTransactionMillisMax: 60_000,
  answerMillisMax: 60_000,
}

export interface TestApiLimits {
  readonly sockets?: Partial<RelaySocketLimits>
  readonly http?: Partial<typeof connectionLimits>
  /** Of the service for tests that are about them: `requestLimits`. */
  readonly queries?: QueryLimits
}

/**
 * Starts the API, and stops it after the tests of the file. Passwords have the lowest cost of bcrypt.
 * @param variables of the environment. By default one proxy is trusted.
 * @param limits that differ from the defaults.
 */
export async function startApi(
  variables: Readonly<Record<string, string>> = {},
  limits: TestApiLimits = {},
): Promise<TestApi> {
  const api = await startServiceApi(variables, limits, lowCostPasswordHash)
  Object.assign(api.services.passwords, createPasswords({ cost: lowPasswordCost }))
  return api
}

/** {@link startApi} with the service's own cost of passwords, for tests of the time that they take. */
export const startApiWithServicePasswords = (variables: Readonly<Record<string, string>> = {}): Promise<TestApi> =>
  startServiceApi(variables, {}, servicePasswordHash)

async function startServiceApi(
  variables: Readonly<Record<string, string>>,
  { sockets = {}, http = {}, queries = patientLimits }: TestApiLimits,
  passwordHash: string,
): Promise<TestApi> {
  const database = await createDatabase()
  const config = readConfig(
    testEnvironment({ DATABASE_URL: database.url, PORT: '0', SVC_TRUSTED_PROXY_HOPS: '1', ...variables }),
  )
  const sql = connectPostgres(config.database.url, config.database.connectionsMax, queries)
  const logged: string[] = []
  const log = createLog('api', 'debug', { write: (line) => void logged.push(line) })
  const life = new Lifecycle(log)
  life.hold('database', database, (it) => it.drop())
  life.hold('connections', sql, (it) => it.end({ timeout: 5 }))
  const { port, services, ready } = await startListening({
    config,
    log,
    sql,
    life,
    socketLimits: sockets,
    httpLimits: http,
  })
  await ready
  atEnd(() => life.stop())
  return Object.assign(new Client(`http://127.0.0.1:${port}`), {
    services,
    sql,
    logged,
    given: createGiven(services, passwordHash),
  })
}

export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** Creates a migrated database for this test file. */
export const createDatabase = (): Promise<TestDatabase> => makeDatabase(inject('templateDatabase'))

/** Creates an empty database. */
export const createEmptyDatabase = (): Promise<TestDatabase> => makeDatabase('template1')

/** For all files of this process: a connection costs as much as a database. */
let serverConnection: Database | undefined

async function makeDatabase(template: string): Promise<TestDatabase> {
  serverConnection ??= connectPostgres(inject('postgresUrl'), 1)
  const server = serverConnection
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await server.unsafe(`create database ${name} template ${template} strategy file_copy`)
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: async () => void (await server.unsafe(`drop database ${name} with (force)`)),
  }
}

/** Decrypts an account's stream token from its row. */
export const streamTokenOf = async ({ services }: TestApi, userId: string): Promise<string> =>
  openStreamToken(services.sealing, userId, await getStoredStreamToken(services.sql, userId))

/** Writes a plan to the row without a workflow. A subscription workflow of the account would overwrite it. */
export const givePlan = async (sql: Database, userId: string, addons = 0): Promise<void> => {
  await sql`update users set plan_tier = 'paid', plan_status = 'active', addons = ${addons} where id = ${userId}`
}

const password = 'correct horse battery'
/** A hash of the service takes longer than most tests. */
const lowPasswordCost = 4
/** Hashes of that password. */
const lowCostPasswordHash = '$2b$04$IS7h55cIWos5CwlhjRPkxurlZ7fNEMx7H3BUCTWyNeh3BKmGVDsQm'
const servicePasswordHash = '$2b$12$vn4rLxUq0MwCYKVmc3L6leBV.x8VQvbb8R7GQlby.2Y3kxzX7HAnO'

/** Accounts of a service that runs in other processes. */
export const givenAccounts = (env: Readonly<Record<string, string>>, sql: Database): TestApi['given'] => {
  const config = readConfig(env)
  const services = { sql, sealing: createSealing(config.oauthEncryptionKeys), accessTokens: createAccessTokens(config) }
  return createGiven(services, lowCostPasswordHash)
}

function createGiven(
  services: Pick<Services, 'sql' | 'sealing' | 'accessTokens'>,
  passwordHash: string,
): TestApi['given'] {
  const signIn = async (account: { userId: string; email: string }, client: SignedInClient): Promise<GivenUser> => {
    const opened = await services.sql.begin((tx) =>
      openAuthSession(tx, { userId: account.userId, client, ip: '192.0.2.1', userAgent: '' }),
    )
    const { cp_access_jwt, refresh_token } = await createTokenSet(services, opened)
    const { userId, email } = account
    const { authSessionId } = opened
    return { userId, email, password, authSessionId, bearer: cp_access_jwt, refreshToken: refresh_token }
  }
  return {
    user: async () => {
      const email = `${randomUUID()}@example.com`
      const streamToken = randomBytes(4).toString('hex')
      const userId = await insertUser(services.sql, services.sealing, { email, passwordHash, streamToken })
      if (!userId) throw new Error('a random address or stream token was taken')
      return signIn({ userId, email }, webClient)
    },
    signIn: (user, plugin) => signIn(user, plugin === undefined ? webClient : { kind: 'plugin', name: plugin }),
  }
}

/** Creates an account through the HTTP API, for an API in another process. */
export async function signUp(api: Client): Promise<GivenUser> {
  const email = `${randomUUID()}@example.com`
  const { cp_access_jwt: bearer, refresh_token: refreshToken } = acceptedBody(
    await api.post<TokenSet>('/auth/signup', { email, password }),
  )
  const { user } = acceptedBody(await api.get<{ user: { id: string } }>('/auth/session', { bearer }))
  return { userId: user.id, email, password, authSessionId: '', bearer, refreshToken }
}

/** The body of a reply that a test cannot go on without. */
function acceptedBody<Body>({ status, body }: { readonly status: number; readonly body: Body }): Body {
  if (status >= 300) throw new Error(`the api replied ${status}: ${JSON.stringify(body)}`)
  return body
}
