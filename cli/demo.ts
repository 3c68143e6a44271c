/** `npm run demo`: a client's whole way through a running service, with the times that each step took. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readStackConfig } from '../platform/config/stack.ts'
import { readKeptSecrets } from '../platform/embedded/secrets.ts'
import { type Answer, ask, basicAuth, expecting, type Request } from './http.ts'
import { readRunning } from './kept-files.ts'

const connectionId = 'demo'
/** Two questions a second stay under the limit of 60 a minute for the half minute that a start may take. */
const lookMillis = 500
const looksMax = 55
const began = performance.now()

interface Session {
  session_id: string
  state: string
  reason: string
  region: string
  connect?: { srtla_url: string; srt_url: string; player_url: string; stats_url: string } | null
}

interface Target {
  base: string
  email: string
  password: string
  operatorPassword: string | undefined
}

async function findTarget(): Promise<Target> {
  const stack = readStackConfig()
  const { values } = parseArgs({
    options: { api: { type: 'string' }, email: { type: 'string' }, password: { type: 'string' } },
  })
  const running = await readRunning(stack.dataDir)
  const kept = await readKeptSecrets(stack.dataDir)
  const api = values.api ?? stack.apiUrl ?? running?.api
  if (!api)
    throw new Error(`Nothing is running on ${stack.dataDir}. Start it first: npm start (or name one: --api URL)`)
  const email = values.email ?? stack.demo.email ?? kept.demo?.email
  const password = values.password ?? stack.demo.password ?? kept.demo?.password
  if (!email || !password) throw new Error('Say whom to sign in: --email and --password')
  await fetch(`${api}/livez`, { signal: AbortSignal.timeout(5000) }).catch((error: Error) => {
    throw new Error(`Nothing answers at ${api} (${error.message}). Start it first: npm start`)
  })
  const operatorPassword = stack.secrets.SVC_OPERATOR_PASSWORD ?? kept.SVC_OPERATOR_PASSWORD
  return { base: `${api.replace(/\/+$/, '')}/api/v1`, email, password, operatorPassword }
}

function say(text: string, millis?: number): void {
  const at = `${Math.round(performance.now() - began)}`.padStart(6)
  console.log(`${at} ms  ${text}${millis === undefined ? '' : `  (took ${Math.round(millis)} ms)`}`)
}

/** Does one step and says what came of it and how long it took. */
async function step<T>(work: () => Promise<T>, done: (outcome: T) => string): Promise<T> {
  const since = performance.now()
  const outcome = await work()
  say(done(outcome), performance.now() - since)
  return outcome
}

const post = <T>(url: string, body: unknown, token?: string, more: Request['headers'] = {}): Promise<Answer<T>> =>
  ask<T>(url, { method: 'POST', body, headers: { ...bearer(token), ...more } })

const bearer = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** As OBS plugins do it: the plugin never sees a password, a person approves it in the browser. */
async function signInAsPlugin({ base, email, password }: Target): Promise<string> {
  const attempt = await step(
    async () =>
      expecting(
        'the start of the plugin login',
        await post<{ login_attempt_id: string; poll_token: string; user_code: string; authorize_url: string }>(
          `${base}/auth/plugin/login/start`,
          { client_name: 'npm run demo' },
        ),
        201,
      ),
    ({ user_code, authorize_url }) => `plugin login begun, code ${user_code}, for the browser: ${authorize_url}`,
  )
  // A person would do this at authorize_url; here the demo account's password stands in for them.
  const person = await step(
    async () =>
      expecting('the sign-in', await post<{ cp_access_jwt: string }>(`${base}/auth/login`, { email, password }), 200),
    () => `${email} signed in by password, standing in for the person at the browser`,
  )
  const attemptUrl = `${base}/auth/plugin/login/attempts/${attempt.login_attempt_id}`
  await step(
    async () => {
      const seen = expecting(
        'the look at the attempt',
        await ask<{ user_code: string; client_name: string }>(attemptUrl, { headers: bearer(person.cp_access_jwt) }),
        200,
      )
      if (seen.user_code !== attempt.user_code) throw new Error('the browser shows another code than the plugin')
      expecting('the approval', await post(`${attemptUrl}/approve`, {}, person.cp_access_jwt), 204)
      return seen
    },
    ({ client_name }) => `the codes match, "${client_name}" approved`,
  )
  const { login_attempt_id, poll_token } = attempt
  const tokens = await step(
    async () =>
      expecting(
        'the poll',
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

async function startRelay(base: string, token: string): Promise<Session> {
  const asked = performance.now()
  const key = { 'idempotency-key': randomUUID() }
  const body = { connection_id: connectionId }
  const { session } = await step(
    async () =>
      expecting('the start', await post<{ session: Session }>(`${base}/relay/start`, body, token, key), 200, 201),
    (reply) =>
      `relay asked for: session ${reply.session.session_id} in ${reply.session.region}, ${reply.session.state}`,
  )
  let told = session.state
  for (let look = 0; look < looksMax; look++) {
    const url = `${base}/relay/active?connection_id=${connectionId}`
    const answer = await ask<{ session: Session | null }>(url, { headers: bearer(token), patienceMillis: 60_000 })
    const now = expecting('the look at the relay', answer, 200).session
    if (!now) throw new Error('the relay is gone: see its moves in the Temporal UI and the logs')
    if (now.state !== told) say(`${told} → ${now.state} (${now.reason})`)
    told = now.state
    if (now.state === 'active') {
      say(`the relay is active, ${Math.round(performance.now() - asked)} ms after it was asked for`)
      return now
    }
    await sleep(lookMillis)
  }
  throw new Error(`the relay is still ${told} after ${(looksMax * lookMillis) / 1000} s`)
}

async function showConnection({ connect }: Session): Promise<void> {
  if (!connect) throw new Error('the session has no addresses although it is active')
  console.log(`\n           encoder (SRTLA)  ${connect.srtla_url}`)
  console.log(`           encoder (SRT)    ${connect.srt_url}`)
  console.log(`           player           ${connect.player_url}\n`)
  await step(
    async () => (await ask(connect.stats_url)).body,
    (stats) => `statistics from the relay itself, ${connect.stats_url}: ${JSON.stringify(stats)}`,
  )
}

async function showHistory({ base, operatorPassword }: Target, sessionId: string): Promise<void> {
  if (!operatorPassword) return say('no operator password, so no history: set SVC_OPERATOR_PASSWORD')
  const answer = await ask<{
    transitions: Array<{ from: string; to: string; reason: string; actor: string; at: string }>
    temporal_ui_url: string
  }>(`${base}/admin/sessions/${sessionId}`, { headers: { authorization: basicAuth(operatorPassword) } })
  const { transitions, temporal_ui_url } = expecting('the history', answer, 200)
  console.log('\n  The moves of this session:\n')
  for (const { at, from, to, reason, actor } of transitions) {
    console.log(`  ${at}  ${from.padEnd(12)} → ${to.padEnd(8)} ${reason.padEnd(16)} by ${actor}`)
  }
  console.log(`\n  Its workflow: ${temporal_ui_url}\n`)
}

async function tour(): Promise<void> {
  const target = await findTarget()
  const token = await signInAsPlugin(target)
  const session = await startRelay(target.base, token)
  await showConnection(session)
  const { session_id } = session
  await step(
    async () =>
      expecting(
        'the stop',
        await post<{ session: Session }>(`${target.base}/relay/stop`, { session_id, immediate: true }, token),
        200,
      ),
    (reply) => `relay stopped: ${reply.session.state} (${reply.session.reason})`,
  )
  await showHistory(target, session_id)
}

try {
  await tour()
} catch (error) {
  console.error(`\n✖ ${(error as Error).message}`)
  process.exitCode = 1
}
