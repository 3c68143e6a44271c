/** `npm run demo`: does what a plugin does with a running service, and prints how long each step takes. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type ApiResult, expectSuccess } from '../client/api-error.ts'
import { type ApiClient, bearer, createApiClient, operatorCredentials, repeatFor } from '../client/client.ts'
import { readStackConfig } from '../platform/config/stack.ts'
import { readStoredSecrets } from '../platform/embedded/secrets.ts'
import { findObstacle, readRelayStats, type Session, streamTestPattern } from './demo-stream.ts'
import { findMediaPrograms } from './media-programs.ts'
import { readRunningStack } from './stack-state.ts'

const connectionId = 'demo'
/** Two polls per second stay below the limit of 60 per minute during the half minute that a start may take. */
const pollMillis = 500
const pollsMax = 55
const secondsMax = 600
const startedAt = performance.now()

type Target = Awaited<ReturnType<typeof findTarget>>

async function findTarget() {
  const stack = readStackConfig()
  const { values } = parseArgs({
    options: {
      api: { type: 'string' },
      email: { type: 'string' },
      password: { type: 'string' },
      seconds: { type: 'string', default: '10' },
    },
  })
  const seconds = Number(values.seconds)
  if (!(seconds >= 1 && seconds <= secondsMax)) throw new Error(`--seconds is not a number from 1 to ${secondsMax}`)
  const running = await readRunningStack(stack.dataDir)
  const stored = await readStoredSecrets(stack.dataDir)
  const api = values.api ?? stack.apiUrl ?? running?.api
  if (!api) throw new Error(`No stack is running in ${stack.dataDir}. Start it first: npm start (or pass --api URL)`)
  const email = values.email ?? stack.demo.email ?? stored.demo?.email
  const password = values.password ?? stack.demo.password ?? stored.demo?.password
  if (!email || !password) throw new Error('The account is missing: pass --email and --password')
  await createApiClient({ baseUrl: api, timeoutMillis: 5000 })
    .GET('/livez', { parseAs: 'text' })
    .catch(({ message }: Error) => {
      throw new Error(`The API does not answer: ${message}. Start it first: npm start`)
    })
  const operatorPassword = stack.secrets.SVC_OPERATOR_PASSWORD ?? stored.SVC_OPERATOR_PASSWORD
  const programs = await findMediaPrograms(stack.searchPath)
  return { api, email, password, operatorPassword, programs, seconds }
}

function print(text: string, millis?: number): void {
  const at = `${Math.round(performance.now() - startedAt)}`.padStart(6)
  console.log(`${at} ms  ${text}${millis === undefined ? '' : `  (took ${Math.round(millis)} ms)`}`)
}

/** Runs a step, and prints its result and its duration. */
async function step<T>(work: () => Promise<T>, describe: (result: T) => string): Promise<T> {
  const since = performance.now()
  const result = await work()
  print(describe(result), performance.now() - since)
  return result
}

/** Runs a step that is one request. @param action starts the message of its error. */
const requestStep = <T>(
  action: string,
  request: () => Promise<ApiResult<T>>,
  describe: (reply: Exclude<T, undefined>) => string,
) => step(async () => expectSuccess(await request(), action), describe)

/** Signs in like an OBS plugin, which never sees a password: the user approves the login in the browser. */
async function signInAsPlugin({ api, email, password }: Target): Promise<string> {
  const plugin = createApiClient({ baseUrl: api })
  const started = await requestStep(
    'The start of the plugin login',
    () => plugin.POST('/api/v1/auth/plugin/login/start', { body: { client_name: 'npm run demo' } }),
    ({ user_code, authorize_url }) => `plugin login started: code ${user_code}, to be approved at ${authorize_url}`,
  )
  // A user would do this in the browser, at authorize_url.
  const user = await requestStep(
    'The sign-in',
    () => plugin.POST('/api/v1/auth/login', { body: { email, password } }),
    () => `${email} signed in with the password, as in the browser`,
  )
  const browser = createApiClient({ baseUrl: api, headers: bearer(user.cp_access_jwt) })
  await step(
    () => approveLogin(browser, started),
    ({ client_name }) => `codes compared, "${client_name}" approved`,
  )
  const { login_attempt_id, poll_token } = started
  const polled = await requestStep(
    'The poll',
    () => plugin.POST('/api/v1/auth/plugin/login/poll', { body: { login_attempt_id, poll_token } }),
    ({ status }) => `the plugin polled: ${status}`,
  )
  if (polled.status !== 'complete') throw new Error('The login was approved, and the poll got no tokens')
  return polled.cp_access_jwt
}

async function approveLogin(browser: ApiClient, started: { login_attempt_id: string; user_code: string }) {
  const params = { path: { id: started.login_attempt_id } }
  const found = await browser.GET('/api/v1/auth/plugin/login/attempts/{id}', { params })
  const attempt = expectSuccess(found, 'The login attempt')
  if (attempt.user_code !== started.user_code) throw new Error('The browser shows another code than the plugin')
  expectSuccess(await browser.POST('/api/v1/auth/plugin/login/attempts/{id}/approve', { params }), 'The approval')
  return attempt
}

async function readRelay(user: ApiClient): Promise<Session> {
  const params = { query: { connection_id: connectionId } }
  const read = await user.GET('/api/v1/relay/active', { params, ...repeatFor(60_000) })
  const { session } = expectSuccess(read, 'The state of the relay')
  if (!session) throw new Error('The relay has stopped: see its history in the Temporal UI, and the logs')
  return session
}

async function startRelay(user: ApiClient): Promise<Session> {
  const requestedAt = performance.now()
  const params = { header: { 'Idempotency-Key': randomUUID() } }
  const body = { connection_id: connectionId }
  const { session } = await requestStep(
    'The start',
    () => user.POST('/api/v1/relay/start', { params, body }),
    ({ session }) => `relay requested: session ${session.session_id} in ${session.region}, ${session.state}`,
  )
  let state: string = session.state
  for (let poll = 0; poll < pollsMax; poll++) {
    const current = await readRelay(user)
    if (current.state !== state) print(`${state} → ${current.state} (${current.reason})`)
    state = current.state
    if (state === 'active') {
      print(`relay active ${Math.round(performance.now() - requestedAt)} ms after the request`)
      return current
    }
    await sleep(pollMillis)
  }
  throw new Error(`The relay is still ${state} after ${(pollsMax * pollMillis) / 1000} s`)
}

async function showConnection({ connect }: Session): Promise<void> {
  if (!connect) throw new Error('The session is active and has no addresses')
  console.log(`\n           encoder (SRTLA)  ${connect.srtla_url}`)
  console.log(`           encoder (SRT)    ${connect.srt_url}`)
  console.log(`           player           ${connect.player_url}\n`)
  await step(
    () => readRelayStats<unknown>(connect.stats_url),
    (stats) => `statistics of the relay, ${connect.stats_url}: ${JSON.stringify(stats)}`,
  )
}

async function showStream({ programs, seconds }: Target, user: ApiClient, session: Session): Promise<void> {
  const obstacle = findObstacle(session.engine, programs, process.platform)
  if (obstacle !== undefined || !session.connect) return print(`test pattern skipped: ${obstacle ?? 'no addresses'}`)
  const readIngest = async () => (await readRelay(user)).ingest
  const { connect } = session
  const { signal } = interruption()
  await step(
    () => streamTestPattern({ connect, programs, seconds, print, readIngest, signal }),
    () => 'test pattern ended',
  )
}

/** From its call on, Ctrl-C aborts the signal instead of ending this process, so that the relay is stopped. */
function interruption(): AbortController {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => controller.abort())
  return controller
}

async function stopRelay(user: ApiClient, { session_id }: Session): Promise<void> {
  await requestStep(
    'The stop',
    () => user.POST('/api/v1/relay/stop', { body: { session_id, immediate: true } }),
    (reply) => `relay stopped: ${reply.session.state} (${reply.session.reason})`,
  )
}

async function showHistory({ api, operatorPassword }: Target, sessionId: string): Promise<void> {
  if (!operatorPassword) return print('history skipped: set SVC_OPERATOR_PASSWORD to see it')
  const operator = createApiClient({ baseUrl: api, headers: operatorCredentials(operatorPassword) })
  const inspected = await operator.GET('/api/v1/admin/sessions/{id}', { params: { path: { id: sessionId } } })
  const { transitions, temporal_ui_url } = expectSuccess(inspected, 'The history')
  console.log('\n  Transitions of the session:\n')
  for (const { at, from, to, reason, initiator } of transitions) {
    console.log(`  ${at}  ${from.padEnd(12)} → ${to.padEnd(8)} ${reason.padEnd(16)} by ${initiator}`)
  }
  console.log(`\n  Workflow: ${temporal_ui_url}\n`)
}

async function runDemo(): Promise<void> {
  const target = await findTarget()
  const token = await signInAsPlugin(target)
  const user = createApiClient({ baseUrl: target.api, headers: bearer(token) })
  const session = await startRelay(user)
  try {
    await showConnection(session)
    await showStream(target, user, session)
  } finally {
    await stopRelay(user, session)
  }
  await showHistory(target, session.session_id)
}

try {
  await runDemo()
} catch (error) {
  console.error(`\n✖ ${(error as Error).message}`)
  process.exitCode = 1
}
