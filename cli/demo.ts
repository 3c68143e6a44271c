/** `npm run demo`: does what a plugin does with a running service, and prints how long each step takes. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readStackConfig } from '../platform/config/stack.ts'
import { readStoredSecrets } from '../platform/embedded/secrets.ts'
import { type Answer, basicAuth, expectStatus, type Request, request } from './api-client.ts'
import { findObstacle, type Ingest, streamTestPattern } from './demo-stream.ts'
import { findMediaPrograms, type MediaPrograms } from './media-programs.ts'
import { readRunningStack } from './stack-state.ts'

const connectionId = 'demo'
/** Two polls per second stay below the limit of 60 per minute during the half minute that a start may take. */
const pollMillis = 500
const pollsMax = 55
const secondsMax = 600
const startedAt = performance.now()

interface Session {
  session_id: string
  state: string
  reason: string
  region: string
  /** Present when the relay forwards no video. */
  engine?: 'none'
  ingest?: Ingest | null
  connect?: { srtla_url: string; srt_url: string; player_url: string; stats_url: string } | null
}

interface Target {
  base: string
  email: string
  password: string
  operatorPassword: string | undefined
  programs: MediaPrograms
  /** How long the test pattern is published. */
  seconds: number
}

async function findTarget(): Promise<Target> {
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
  await fetch(`${api}/livez`, { signal: AbortSignal.timeout(5000) }).catch((error: Error) => {
    throw new Error(`The API at ${api} does not answer (${error.message}). Start it first: npm start`)
  })
  const operatorPassword = stack.secrets.SVC_OPERATOR_PASSWORD ?? stored.SVC_OPERATOR_PASSWORD
  const programs = await findMediaPrograms(stack.searchPath)
  return { base: `${api.replace(/\/+$/, '')}/api/v1`, email, password, operatorPassword, programs, seconds }
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

const post = <T>(url: string, body: unknown, token?: string, more: Request['headers'] = {}): Promise<Answer<T>> =>
  request<T>(url, { method: 'POST', body, headers: { ...bearer(token), ...more } })

const bearer = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** Signs in like an OBS plugin, which never sees a password: the user approves the login in the browser. */
async function signInAsPlugin({ base, email, password }: Target): Promise<string> {
  const attempt = await step(
    async () =>
      expectStatus(
        'The start of the plugin login',
        await post<{ login_attempt_id: string; poll_token: string; user_code: string; authorize_url: string }>(
          `${base}/auth/plugin/login/start`,
          { client_name: 'npm run demo' },
        ),
        201,
      ),
    ({ user_code, authorize_url }) => `plugin login started: code ${user_code}, to be approved at ${authorize_url}`,
  )
  // A user would do this in the browser, at authorize_url.
  const user = await step(
    async () =>
      expectStatus(
        'The sign-in',
        await post<{ cp_access_jwt: string }>(`${base}/auth/login`, { email, password }),
        200,
      ),
    () => `${email} signed in with the password, as in the browser`,
  )
  const attemptUrl = `${base}/auth/plugin/login/attempts/${attempt.login_attempt_id}`
  await step(
    async () => {
      const shown = expectStatus(
        'The login attempt',
        await request<{ user_code: string; client_name: string }>(attemptUrl, { headers: bearer(user.cp_access_jwt) }),
        200,
      )
      if (shown.user_code !== attempt.user_code) throw new Error('The browser shows another code than the plugin')
      expectStatus('The approval', await post(`${attemptUrl}/approve`, {}, user.cp_access_jwt), 204)
      return shown
    },
    ({ client_name }) => `codes compared, "${client_name}" approved`,
  )
  const { login_attempt_id, poll_token } = attempt
  const tokens = await step(
    async () =>
      expectStatus(
        'The poll',
        await post<{ status: string; cp_access_jwt: string }>(`${base}/auth/plugin/login/poll`, {
          login_attempt_id,
          poll_token,
        }),
        200,
      ),
    ({ status }) => `the plugin polled: ${status}`,
  )
  return tokens.cp_access_jwt
}

async function readRelay(base: string, token: string): Promise<Session> {
  const url = `${base}/relay/active?connection_id=${connectionId}`
  const answer = await request<{ session: Session | null }>(url, { headers: bearer(token), retryMillisMax: 60_000 })
  const { session } = expectStatus('The state of the relay', answer, 200)
  if (!session) throw new Error('The relay has stopped: see its history in the Temporal UI, and the logs')
  return session
}

async function startRelay(base: string, token: string): Promise<Session> {
  const requestedAt = performance.now()
  const key = { 'idempotency-key': randomUUID() }
  const body = { connection_id: connectionId }
  const { session } = await step(
    async () =>
      expectStatus('The start', await post<{ session: Session }>(`${base}/relay/start`, body, token, key), 200, 201),
    (reply) =>
      `relay requested: session ${reply.session.session_id} in ${reply.session.region}, ${reply.session.state}`,
  )
  let { state } = session
  for (let poll = 0; poll < pollsMax; poll++) {
    const current = await readRelay(base, token)
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
    async () => (await request(connect.stats_url)).body,
    (stats) => `statistics of the relay, ${connect.stats_url}: ${JSON.stringify(stats)}`,
  )
}

async function showStream({ base, programs, seconds }: Target, token: string, session: Session): Promise<void> {
  const obstacle = findObstacle(session.engine, programs, process.platform)
  if (obstacle !== undefined || !session.connect) return print(`test pattern skipped: ${obstacle ?? 'no addresses'}`)
  const readIngest = async () => (await readRelay(base, token)).ingest
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

async function stopRelay({ base }: Target, token: string, { session_id }: Session): Promise<void> {
  await step(
    async () =>
      expectStatus(
        'The stop',
        await post<{ session: Session }>(`${base}/relay/stop`, { session_id, immediate: true }, token),
        200,
      ),
    (reply) => `relay stopped: ${reply.session.state} (${reply.session.reason})`,
  )
}

async function showHistory({ base, operatorPassword }: Target, sessionId: string): Promise<void> {
  if (!operatorPassword) return print('history skipped: set SVC_OPERATOR_PASSWORD to see it')
  const answer = await request<{
    transitions: Array<{ from: string; to: string; reason: string; initiator: string; at: string }>
    temporal_ui_url: string
  }>(`${base}/admin/sessions/${sessionId}`, { headers: { authorization: basicAuth(operatorPassword) } })
  const { transitions, temporal_ui_url } = expectStatus('The history', answer, 200)
  console.log('\n  Transitions of the session:\n')
  for (const { at, from, to, reason, initiator } of transitions) {
    console.log(`  ${at}  ${from.padEnd(12)} → ${to.padEnd(8)} ${reason.padEnd(16)} by ${initiator}`)
  }
  console.log(`\n  Workflow: ${temporal_ui_url}\n`)
}

async function runDemo(): Promise<void> {
  const target = await findTarget()
  const token = await signInAsPlugin(target)
  const session = await startRelay(target.base, token)
  try {
    await showConnection(session)
    await showStream(target, token, session)
  } finally {
    await stopRelay(target, token, session)
  }
  await showHistory(target, session.session_id)
}

try {
  await runDemo()
} catch (error) {
  console.error(`\n✖ ${(error as Error).message}`)
  process.exitCode = 1
}
