/**
 * A Postgres that accepts statements and answers none. With shorter limits than the service's, whose times
 * `test/system/outage-times.test.ts` measures.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { commandLimits } from '../../../db/connection.ts'
import { type Answer, type GivenUser, givePlan, startApi, statusAndCode, type TestApi } from '../../support/api.ts'
import { type OwnPostgres, startOwnPostgres } from '../../support/own-postgres.ts'
import { propertyRuns } from '../../support/property-runs.ts'
import { eventually, type OneSession } from '../../support/relays.ts'

const relaySecret = randomBytes(48).toString('base64')
const sharedSecrets = {
  SVC_JWT_SECRET: randomBytes(48).toString('base64'),
  OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  SVC_RELAY_AUTH_SECRET: relaySecret,
}
let postgres: OwnPostgres
let api: TestApi
/** Waits for Postgres without a limit, for what a test does beside. */
let patient: TestApi
beforeAll(async () => {
  postgres = await startOwnPostgres()
  const queries = {
    statementMillisMax: 1250,
    lockMillisMax: 1000,
    idleTransactionMillisMax: 5000,
    answerMillisMax: 1500,
  }
  const variables = { DATABASE_URL: postgres.url, ...sharedSecrets }
  api = await startApi(variables, { queries })
  patient = await startApi(variables, { queries: commandLimits })
})

async function freezePostgres(): Promise<void> {
  onTestFinished(() => postgres.thaw())
  await postgres.freeze()
}

const start = (user: GivenUser, key: string): Promise<Answer<OneSession>> =>
  api.post<OneSession>('/relay/start', {}, { bearer: user.bearer, headers: { 'Idempotency-Key': key } })

test('every request is answered with 503 while Postgres hangs, and normally after it continues', async () => {
  const user = await patient.given.user()
  const { bearer } = user
  const requests = [
    () => api.get('/auth/session', { bearer }),
    () => api.get('/relay/active', { bearer }),
    () => start(user, randomUUID()),
    () => api.post('/relay/stop', { connection_id: 'default' }, { bearer }),
    () => api.post('/auth/login', { email: user.email, password: user.password }),
    () => api.post('/auth/refresh', { refresh_token: 'x' }),
    () => api.post('/auth/plugin/login/start', {}),
    () => api.get('/capacity/status'),
    () => api.get('/usage/current', { bearer }),
    () =>
      api.post(
        '/relay/health',
        { session_id: randomUUID(), instance_id: 'i' },
        { headers: { 'X-Relay-Auth': relaySecret } },
      ),
  ] satisfies (() => Promise<Answer<object>>)[]
  const askAll = () => Promise.all(requests.map((ask) => ask()))
  await freezePostgres()
  // The second time they find batches and connections that already wait.
  for (const answer of [...(await askAll()), ...(await askAll())]) {
    expect(statusAndCode(answer)).toEqual([503, 'temporarily_unavailable'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  await postgres.thaw()
  const answered = requests.map((ask) => eventually<Answer<object>>(ask, ({ status }) => status !== 503))
  expect((await Promise.all(answered)).map(({ status }) => status)).toEqual([
    200, 200, 403, 404, 200, 401, 201, 200, 200, 404,
  ])
})

test('/livez answers, and /health reports that Postgres does not answer', async () => {
  await freezePostgres()
  const page = (path: string) => fetch(`${api.url}${path}`)
  expect((await page('/livez')).status).toBe(200)
  const health = await page('/health')
  expect([health.status, await health.json()]).toMatchObject([503, { checks: { postgres: 'failing' } }])
  expect(await (await page('/metrics')).text()).toMatch(/^svc_metrics_complete 0$/m)
  await postgres.thaw()
  await eventually(
    async () => ((await (await page('/health')).json()) as { checks: { postgres: string } }).checks.postgres,
    (check) => check === 'ok',
  )
})

test.each([1, 4, 2, 6].slice(0, propertyRuns(2, 4)))(
  'with Postgres frozen after %i of 12 answered starts, each start happens once, whether or not it is repeated',
  async (answeredBefore) => {
    const users = await Promise.all(Array.from({ length: 12 }, () => patient.given.user()))
    for (const user of users) await givePlan(patient.sql, user.userId)
    const keys = users.map(() => randomUUID())
    onTestFinished(() => postgres.thaw())
    let answered = 0
    // Freezes during the transactions of the others, some of which are about to commit.
    const first = users.map(async (user, index) => {
      const answer = await start(user, keys[index] ?? '')
      answered += 1
      if (answered === answeredBefore) await postgres.freeze()
      return answer
    })
    const answers = await Promise.all(first)
    for (const answer of answers) expect([200, 201, 503]).toContain(answer.status)
    await postgres.thaw()
    // Repeats half of them at once, while the server may still execute statements that it has received.
    const repeated = await Promise.all(
      users.slice(0, 6).map((user, index) =>
        eventually(
          () => start(user, keys[index] ?? ''),
          (answer) => answer.status !== 503,
        ),
      ),
    )
    for (const answer of repeated) expect([200, 201]).toContain(answer.status)
    for (const [index, user] of users.entries()) {
      const rows = await patient.sql<{ id: string; keyed: string | null }[]>`
        select s.id, k.session_id as keyed from relay_sessions s
        left join idempotency_keys k on k.user_id = s.user_id and k.key = ${keys[index] ?? ''}
        where s.user_id = ${user.userId}`
      const known = (repeated[index] ?? answers[index])?.body.session?.session_id
      // An answered or repeated start exists. Another one may exist, and then together with its idempotency key.
      expect(rows.length).toBeLessThanOrEqual(1)
      if (known) expect(rows.map((row) => row.id)).toEqual([known])
      for (const row of rows) expect(row.keyed).toBe(row.id)
    }
    // Transactions that the server executes late hold the lock on the user's row, which these starts wait for.
    const late = await Promise.all(
      users.slice(6).map((user, index) =>
        eventually(
          () => start(user, keys[index + 6] ?? ''),
          (answer) => answer.status !== 503,
        ),
      ),
    )
    expect(late.every((answer) => [200, 201].includes(answer.status))).toBe(true)
    const [total] = await patient.sql`
      select count(*)::int as sessions from relay_sessions where user_id = any(${users.map((user) => user.userId)}::uuid[])`
    expect(total?.sessions).toBe(users.length)
  },
)
