import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Answer, type GivenUser, givePlan, startApi, statusAndCode, type TestApi } from '../../support/api.ts'
import { type OwnPostgres, startOwnPostgres } from '../../support/own-postgres.ts'
import { eventually, type OneSession, operator, startService } from '../../support/relays.ts'

const relaySecret = randomBytes(48).toString('base64')
let postgres: OwnPostgres
let api: TestApi
beforeAll(async () => {
  postgres = await startOwnPostgres()
  api = await startApi({ DATABASE_URL: postgres.url, SVC_RELAY_AUTH_SECRET: relaySecret })
})

async function freezePostgres(): Promise<void> {
  onTestFinished(() => postgres.thaw())
  await postgres.freeze()
}

const measure = async <Value>(work: Promise<Value>): Promise<{ value: Value; millis: number }> => {
  const startedAt = performance.now()
  return { value: await work, millis: performance.now() - startedAt }
}

const start = (user: GivenUser, key: string): Promise<Answer<OneSession>> =>
  api.post<OneSession>('/relay/start', {}, { bearer: user.bearer, headers: { 'Idempotency-Key': key } })

const isAnswered = (status: number) => status === 200

test('every request is answered with 503 within 5 s while Postgres hangs, and normally soon after it continues', async () => {
  const user = await api.given.user()
  const { bearer } = user
  const requests = () => [
    api.get('/auth/session', { bearer }),
    api.get('/relay/active', { bearer }),
    start(user, randomUUID()),
    api.post('/relay/stop', { connection_id: 'default' }, { bearer }),
    api.post('/auth/login', { email: user.email, password: user.password }),
    api.post('/auth/refresh', { refresh_token: 'x' }),
    api.post('/auth/plugin/login/start', {}),
    api.get('/capacity/status'),
    api.get('/usage/current', { bearer }),
    api.post(
      '/relay/health',
      { session_id: randomUUID(), instance_id: 'i' },
      { headers: { 'X-Relay-Auth': relaySecret } },
    ),
  ]
  await freezePostgres()
  const pending: Promise<{ value: Answer<object>; millis: number }>[] = []
  // Repeated, so that some requests find batches and connections that already wait.
  for (let round = 0; round < 6; round += 1) {
    pending.push(...requests().map((request) => measure<Answer<object>>(request)))
    await sleep(800)
  }
  const answers = await Promise.all(pending)
  for (const { value } of answers) {
    expect(statusAndCode(value)).toEqual([503, 'temporarily_unavailable'])
    expect(Number(value.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect(Math.max(...answers.map(({ millis }) => millis))).toBeLessThan(5000)

  await postgres.thaw()
  const recovered = await measure(
    eventually(async () => (await api.get('/auth/session', { bearer })).status, isAnswered),
  )
  expect(recovered.millis).toBeLessThan(5000)
  expect((await Promise.all(requests())).map((one) => one.status)).toEqual([
    ...[200, 200, 403, 404, 200, 401, 201, 200, 200, 404],
  ])
})

test('/livez answers at once, and /health reports within 2 s that Postgres does not answer', async () => {
  await freezePostgres()
  const page = (path: string) => measure(fetch(`${api.url}${path}`))
  const livez = await page('/livez')
  expect([livez.value.status, livez.millis < 500]).toEqual([200, true])
  const health = await page('/health')
  expect([health.value.status, await health.value.json()]).toMatchObject([503, { checks: { postgres: 'failing' } }])
  expect(health.millis).toBeLessThan(2000)
  const metrics = await page('/metrics')
  expect(await metrics.value.text()).toMatch(/^svc_metrics_complete 0$/m)
  expect(metrics.millis).toBeLessThan(5000)
  await postgres.thaw()
  await eventually(
    async () => ((await (await fetch(`${api.url}/health`)).json()) as { checks: { postgres: string } }).checks.postgres,
    (check) => check === 'ok',
  )
})

test.each([1, 2, 4, 6])(
  'with Postgres frozen after %i of 12 answered starts, each start happens once, whether or not it is repeated',
  async (answeredBefore) => {
    const users = await Promise.all(Array.from({ length: 12 }, () => api.given.user()))
    for (const user of users) await givePlan(api.sql, user.userId)
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
      const rows = await api.sql<{ id: string; keyed: string | null }[]>`
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
    const late = await Promise.all(users.slice(6).map((user, index) => start(user, keys[index + 6] ?? '')))
    expect(late.every((answer) => [200, 201].includes(answer.status))).toBe(true)
    const [total] = await api.sql`
      select count(*)::int as sessions from relay_sessions where user_id = any(${users.map((user) => user.userId)}::uuid[])`
    expect(total?.sessions).toBe(users.length)
  },
)

test('a worker continues after Postgres hung, and no relay is lost', async () => {
  const service = await startService({ variables: { DATABASE_URL: postgres.url } })
  const { user, session } = await service.activeRelay()
  await freezePostgres()
  // Longer than the timeout of a local activity and the health timeout of a relay.
  await sleep(8000)
  await postgres.thaw()
  const { session: second } = await service.activeRelay(await service.user())
  expect(second.state).toBe('active')
  const { transitions } = await service.history(session.session_id)
  expect(transitions.map((one) => one.reason)).toEqual(['relay_ready'])
  expect((await user.active()).session).toMatchObject({ session_id: session.session_id, state: 'active' })
  const thawedAt = Date.now()
  await eventually(
    async () =>
      (
        await service.api.get<{ jobs: { name: string; last_success_at: string }[] }>('/admin/jobs', {
          headers: operator,
        })
      ).body.jobs,
    (jobs) =>
      ['deliver_commands', 'watch_health'].every((name) => {
        const job = jobs.find((one) => one.name === name)
        return Date.parse(job?.last_success_at ?? '') > thawedAt
      }),
  )
  expect((await fetch(`${service.api.url}/health`)).status).toBe(200)
})
