import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { startApi as startListening } from '../../api/start-api.ts'
import { connectPostgres } from '../../db/connection.ts'
import { migrationLock } from '../../db/migrations.ts'
import { readConfig } from '../../platform/config.ts'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { type Client, type ErrorBody, startApi, type TestApi } from '../support/api.ts'
import {
  eventually,
  freePort,
  type OneSession,
  operator,
  paperRelays,
  passageTo,
  startService,
  type TestService,
} from '../support/relays.ts'

const paper = paperRelays()
const relaySecret = randomBytes(48).toString('base64')
let service: TestService
beforeAll(async () => {
  service = await startService({ around: paper.around, variables: { SVC_RELAY_AUTH_SECRET: relaySecret } })
})

const page = (at: Client, path: string, request?: RequestInit) => fetch(`${at.url}${path}`, request)
const metricsOf = async (at: Client) => (await page(at, '/metrics')).text()
/** `name{b="1",a="2"} 3` as its name with its labels in the order of their names, and its value. */
const samples = (text: string): Map<string, number> =>
  new Map(
    [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels, value]) => [
      labels ? `${name}{${labels.split(',').sort().join(',')}}` : name,
      Number(value),
    ]),
  )
const sampleOf = (text: string, series: string): number | undefined => samples(text).get(series)
const outcome = (answer: { status: number; body: object }) => [
  answer.status,
  (answer.body as Partial<ErrorBody>).error?.code,
]

describe('the health page', () => {
  test('is well when Postgres, Temporal and a worker are there', async () => {
    const answer = await eventually(
      () => page(service.api, '/health'),
      (one) => one.status === 200,
    )
    expect(await answer.json()).toEqual({ status: 'ok', checks: { postgres: 'ok', temporal: 'ok', worker: 'ok' } })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect((await page(service.api, '/health', { method: 'HEAD' })).status).toBe(200)
  })

  test('names what fails', async () => {
    const alone = await startApi({ TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}` })
    const startedAt = Date.now()
    const answer = await page(alone, '/health')
    expect(answer.status).toBe(503)
    expect(await answer.json()).toEqual({
      status: 'failing',
      checks: { postgres: 'ok', temporal: 'failing', worker: 'failing' },
    })
    expect(Date.now() - startedAt).toBeLessThan(3000)
    expect((await page(alone, '/livez')).status).toBe(200)
  })

  test('takes a worker that said nothing for a while for gone', async () => {
    const api = await startApi()
    const worker = async () =>
      ((await (await page(api, '/health')).json()) as { checks: { worker: string } }).checks.worker
    await api.sql`insert into workers (id, beat_at) values (${randomUUID()}, now() - interval '16 seconds')`
    expect(await worker()).toBe('failing')
    await api.sql`insert into workers (id) values (${randomUUID()})`
    expect(await worker()).toBe('ok')
  })

  test('is not well while another process still makes the tables', async () => {
    const { services } = await startApi({ SVC_RELAY_AUTH_SECRET: relaySecret })
    const migrating = await services.sql.reserve()
    const log = createLog('api', 'fatal')
    const life = new Lifecycle(log)
    const sql = life.hold('connections', connectPostgres(services.config.database.url, 2), (it) => it.end())
    await migrating`select pg_advisory_lock(${migrationLock})`
    const { port, ready } = await startListening({ config: services.config, log, sql, life })
    const early = { url: `http://127.0.0.1:${port}` } as TestApi
    const postgres = async () =>
      ((await (await page(early, '/health')).json()) as { checks: { postgres: string } }).checks.postgres
    expect([await postgres(), (await page(early, '/api/v1/capacity/status')).status]).toEqual(['failing', 503])
    await migrating`select pg_advisory_unlock(${migrationLock})`
    migrating.release()
    await ready
    expect([await postgres(), (await page(early, '/api/v1/capacity/status')).status]).toEqual(['ok', 200])
    await life.stop()
  })
})

describe('while Temporal is away', () => {
  let alone: TestService
  beforeAll(async () => {
    alone = await startService({ worker: false, variables: { TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}` } })
  })

  test('starts and stops are accepted all the same, and soon', async () => {
    const user = await alone.user()
    const timed = async <Value>(work: Promise<Value>): Promise<[Value, number]> => {
      const startedAt = performance.now()
      return [await work, performance.now() - startedAt]
    }
    const [started, startMillis] = await timed(user.start())
    expect([started.status, startMillis < 1500]).toEqual([201, true])
    const [stopped, stopMillis] = await timed(user.stop({ session_id: started.body.session.session_id }))
    expect([stopped.status, stopped.body.session.state, stopMillis < 3000]).toEqual([200, 'provisioning', true])
    const [again, againMillis] = await timed(user.start())
    expect([again.status, againMillis < 3000]).toEqual([200, true])
    const [row] = await alone.api.sql`select command, command_seq, command_delivered_seq from relay_sessions`
    expect(row).toEqual({ command: 'run', command_seq: 3, command_delivered_seq: 0 })
    expect((await user.active()).sessions).toHaveLength(1)
  })

  test('operators can look and disconnect, but not move by hand', async () => {
    const user = await alone.user()
    const { session_id } = (await user.start()).body.session
    const admin = `/admin/sessions/${session_id}`
    const [shown, moved, ended] = await Promise.all([
      alone.history(session_id),
      alone.api.post(`${admin}/transition`, { to: 'active' }, { headers: operator }),
      alone.api.post<OneSession>(`${admin}/disconnect`, { reason: 'x' }, { headers: operator }),
    ])
    expect(shown).toMatchObject({ session: { state: 'provisioning' }, live: null })
    expect(outcome(moved)).toEqual([503, 'temporarily_unavailable'])
    expect([ended.status, ended.body.session.state]).toEqual([200, 'provisioning'])
  })
})

describe('while Postgres is away', () => {
  /** An API whose way to its database can be blocked. */
  const behindPassage = async () => {
    const direct = await startApi()
    const passage = await passageTo(direct.services.config.database.url)
    const api = await startApi({ DATABASE_URL: passage.url, SVC_RELAY_AUTH_SECRET: relaySecret })
    return { api, passage, user: await api.given.user() }
  }

  test('every request that needs it is told to come back, and is answered once it is back', async () => {
    const { api, passage, user } = await behindPassage()
    const { bearer } = user
    const requests = () => [
      api.get('/auth/session', { bearer }),
      api.get('/relay/active', { bearer }),
      api.post('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': randomUUID() } }),
      api.post('/auth/login', { email: user.email, password: user.password }),
      api.post('/auth/refresh', { refresh_token: 'x' }),
      api.post('/auth/plugin/login/start', {}),
      api.get('/capacity/status'),
      api.post(
        '/relay/health',
        { session_id: randomUUID(), instance_id: 'i' },
        { headers: { 'X-Relay-Auth': relaySecret } },
      ),
    ]
    await passage.block()
    const answers = await Promise.all(requests())
    for (const answer of answers) {
      expect(outcome(answer)).toEqual([503, 'temporarily_unavailable'])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(outcome(await api.get('/nowhere'))).toEqual([404, 'not_found'])
    expect((await page(api, '/livez')).status).toBe(200)
    const health = await page(api, '/health')
    expect([health.status, await health.json()]).toMatchObject([503, { checks: { postgres: 'failing' } }])
    const metrics = await page(api, '/metrics')
    expect(metrics.status).toBe(200)
    const text = await metrics.text()
    expect(sampleOf(text, 'svc_metrics_complete')).toBe(0)
    expect(text).toMatch(/svc_http_requests_total\{.*status="503"\} \d/)

    await passage.open()
    await eventually(
      async () => (await api.get('/auth/session', { bearer })).status,
      (status) => status === 200,
    )
    expect((await Promise.all(requests())).map((one) => one.status)).toEqual([200, 200, 403, 200, 401, 201, 200, 404])
  })

  test('a connection that is lost in the middle of things is an outage, not an error of ours', async () => {
    const { api, passage, user } = await behindPassage()
    const statuses = new Map<number, number>()
    const until = Date.now() + 2000
    const ask = async (path: string, key?: string) => {
      while (Date.now() < until) {
        const asking = { bearer: user.bearer, ...(key ? { headers: { 'Idempotency-Key': randomUUID() } } : {}) }
        const { status } = await (key ? api.post(path, {}, asking) : api.get(path, asking))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    const breaking = (async () => {
      while (Date.now() < until) {
        await api.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`.catch(
          () => undefined,
        )
        await passage.block()
        await passage.open()
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    })()
    await Promise.all([
      breaking,
      ...Array.from({ length: 4 }, () => ask('/auth/session')),
      ...Array.from({ length: 4 }, () => ask('/relay/start', 'fresh')),
    ])
    const unexpected = [...statuses.keys()].filter((status) => ![200, 403, 503].includes(status))
    expect([unexpected, api.logged.filter((line) => line.includes('internal_error'))]).toEqual([[], []])
    await eventually(
      async () => (await api.get('/auth/session', { bearer: user.bearer })).status,
      (status) => status === 200,
    )
  })

  test('from the beginning, the process waits for it and says so', async () => {
    const database = await startApi()
    const passage = await passageTo(database.services.config.database.url)
    await passage.block()
    const config = readConfig({
      DATABASE_URL: passage.url,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      SVC_JWT_SECRET: randomBytes(48).toString('base64'),
      SVC_RELAY_AUTH_SECRET: relaySecret,
      OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      PORT: '0',
    })
    const log = createLog('api', 'silent')
    const life = new Lifecycle(log)
    const sql = life.hold('connections', connectPostgres(config.database.url, 2), (it) => it.end({ timeout: 1 }))
    const { port, ready } = await startListening({ config, log, sql, life })
    const api = { url: `http://127.0.0.1:${port}` } as TestApi
    const early = await page(api, '/api/v1/capacity/status')
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '2'])
    expect((await page(api, '/livez')).status).toBe(200)
    expect((await page(api, '/docs')).status).toBe(200)
    await passage.open()
    await ready
    expect((await page(api, '/api/v1/capacity/status')).status).toBe(200)
    await life.stop()
  })
})

describe('the metrics page', () => {
  test('counts requests by the template of their route, and tells of nobody', async () => {
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    await eventually(
      async () => (await user.active()).session?.instance_id,
      (instanceId) => instanceId != null,
    )
    const body = { session_id, instance_id: paper.instanceOf(session_id) }
    await service.api.post('/relay/health', body, { headers: { 'X-Relay-Auth': relaySecret } })
    await eventually(
      async () => (await user.active()).session?.state,
      (state) => state === 'active',
    )
    await service.history(session_id)
    await service.api.get(`/admin/users/${user.userId}`, { headers: operator })
    await service.api.delete(`/auth/sessions/${randomUUID()}`, { bearer: user.bearer })
    await service.api.get(`/invented/${randomUUID()}`)
    await page(service.api, `/api/v1/relay/active?connection_id=${randomUUID()}`, { method: 'PROPFIND' })
    await user.stop({ session_id, immediate: true })

    const text = await eventually(
      () => metricsOf(service.api),
      (one) => /svc_relay_moves_total\{.*from="grace"/.test(one),
    )
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}/)
    expect(text).not.toContain(user.email)
    const routes = new Set([...text.matchAll(/[{,]route="([^"]*)"/g)].map(([, route]) => route))
    for (const route of [
      '/api/v1/relay/start',
      '/api/v1/relay/health',
      '/api/v1/admin/users/:id',
      '/api/v1/admin/sessions/:id',
      '/api/v1/auth/sessions/:id',
      '/metrics',
      'unmatched',
    ])
      expect(routes).toContain(route)
    expect(text).toMatch(/svc_http_requests_total\{method="other",route="unmatched",status="405"\} 1/)
    const ours = text.split('\n').filter((line) => line.startsWith('svc_'))
    const labels = new Set([...ours.join('\n').matchAll(/[{,](\w+)="/g)].map(([, label]) => label))
    expect([...labels].sort()).toEqual(
      [
        'from',
        'job',
        'le',
        'method',
        'operation',
        'outcome',
        'provider',
        'reason',
        'region',
        'route',
        'state',
        'status',
        'to',
      ].sort(),
    )
  })

  test('tells what workers counted and what stands in Postgres', async () => {
    const text = await metricsOf(service.api)
    const move = (from: string, to: string, reason: string) =>
      sampleOf(text, `svc_relay_moves_total{from="${from}",reason="${reason}",region="local",to="${to}"}`)
    expect(move('provisioning', 'active', 'relay_ready')).toBe(1)
    expect(move('active', 'grace', 'stop_requested')).toBe(1)
    expect(move('grace', 'stopped', 'stop_requested')).toBe(1)
    expect(sampleOf(text, 'svc_relay_provisioning_total{outcome="relay_ready",region="local"}')).toBe(1)
    expect(sampleOf(text, 'svc_relay_provisioning_duration_seconds_count{region="local"}')).toBe(1)
    expect(
      sampleOf(text, 'svc_provider_operations_total{operation="create",outcome="ok",provider="local"}'),
    ).toBeGreaterThanOrEqual(1)
    expect(sampleOf(text, 'svc_relay_sessions{region="local",state="active"}')).toBe(0)
    expect(sampleOf(text, 'svc_workers_alive')).toBe(1)
    expect(sampleOf(text, 'svc_metrics_complete')).toBe(1)
    for (const job of ['deliver_commands', 'watch_health', 'sweep_orphans', 'forget_expired']) {
      expect(sampleOf(text, `svc_job_runs_total{job="${job}"}`)).toBeGreaterThanOrEqual(1)
      expect(sampleOf(text, `svc_job_failures_total{job="${job}"}`)).toBe(0)
    }
  })

  test('adds up all workers, those that ended too, and counts only the living', async () => {
    const { sql } = service.api
    const series = 'svc_relay_moves_total{from="provisioning",reason="relay_ready",region="local",to="active"}'
    const before = sampleOf(await metricsOf(service.api), series) ?? 0
    await sql`insert into workers (id, beat_at, metrics) select ${randomUUID()}, '-infinity', metrics from workers limit 1`
    const text = await metricsOf(service.api)
    expect(sampleOf(text, series)).toBe(2 * before)
    expect(sampleOf(text, 'svc_workers_alive')).toBe(1)
  })

  test('is text that Prometheus reads', async () => {
    const answer = await page(service.api, '/metrics')
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const typed = new Set<string>()
    for (const line of (await answer.text()).split('\n').filter((one) => one !== '')) {
      const type = /^# TYPE (\w+) (counter|gauge|histogram|summary)$/.exec(line)
      if (type?.[1]) {
        expect(typed).not.toContain(type[1])
        typed.add(type[1])
      } else if (!line.startsWith('# HELP ')) {
        const sample = /^(\w+?)(?:_bucket|_sum|_count)?(?:\{(?:\w+="[^"\\\n]*",?)+\})? (?:[-+.\de]+|\+Inf|NaN)$/i.exec(
          line,
        )
        expect([line, sample !== null]).toEqual([line, true])
        expect([line, [...typed].some((name) => line.startsWith(name))]).toEqual([line, true])
      }
    }
    expect(typed.size).toBeGreaterThan(10)
  })
})

describe('the description of the interface', () => {
  test('is there to be read by people and programs', async () => {
    const openapi = (await (await page(service.api, '/openapi.json')).json()) as { openapi: string; paths: object }
    expect(openapi.openapi).toMatch(/^3\.1/)
    const docs = await page(service.api, '/docs')
    expect(docs.headers.get('content-type')).toMatch(/^text\/html/)
    expect(docs.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; frame-ancestors 'none'",
    )
    const html = await docs.text()
    for (const path of Object.keys(openapi.paths)) expect(html).toContain(path)
    expect(html).not.toMatch(/<script|<style| style="/)
    const style = await page(service.api, '/docs.css')
    expect([style.status, style.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/css/)])
  })
})
