/** The routes outside of /api/v1: health, metrics, and the program of relays. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startApi as startListening } from '../../api/start-api.ts'
import { connectPostgres } from '../../db/connection.ts'
import { type RelayProgram, storeRelayProgram } from '../../db/fleet/relay-programs.ts'
import { migrationLock } from '../../db/migrations.ts'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { relayBundle } from '../../providers/relay/relay-bundle.ts'
import { type Client, startApi, type TestApi } from '../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { findFreePort } from '../support/ports.ts'
import { eventually, operator } from '../support/relays.ts'

const relaySecret = randomBytes(48).toString('base64')
let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: { SVC_RELAY_AUTH_SECRET: relaySecret } })
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

describe('GET /health', () => {
  test('is ok while Postgres, Temporal and a worker are available', async () => {
    const answer = await eventually(
      () => page(service.api, '/health'),
      ({ status }) => status === 200,
    )
    expect(await answer.json()).toEqual({
      status: 'ok',
      checks: { postgres: 'ok', temporal: 'ok', worker: 'ok', tasks: 'ok' },
    })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect((await page(service.api, '/health', { method: 'HEAD' })).status).toBe(200)
  })

  test('names the failing check', async () => {
    const alone = await startApi({ TEMPORAL_ADDRESS: `127.0.0.1:${await findFreePort()}` })
    const answer = await page(alone, '/health')
    expect(answer.status).toBe(503)
    expect(await answer.json()).toEqual({
      status: 'failing',
      checks: { postgres: 'ok', temporal: 'failing', worker: 'failing', tasks: 'failing' },
    })
    expect((await page(alone, '/livez')).status).toBe(200)
  })

  test('reports a worker without a recent heartbeat as failing', async () => {
    const api = await startApi()
    const worker = async () =>
      ((await (await page(api, '/health')).json()) as { checks: { worker: string } }).checks.worker
    await api.sql`insert into workers (id, heartbeat_at) values (${randomUUID()}, now() - interval '16 seconds')`
    expect(await worker()).toBe('failing')
    await api.sql`insert into workers (id) values (${randomUUID()})`
    expect(await worker()).toBe('ok')
  })

  test('is failing while another process runs the migrations', async () => {
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

describe('GET /metrics', () => {
  test('counts requests by route template, without ids or addresses of users', async () => {
    const user = await service.user()
    const { session_id } = await service.startActiveRelay(user)
    await service.history(session_id)
    await service.api.get(`/admin/users/${user.userId}`, { headers: operator })
    await service.api.delete(`/auth/sessions/${randomUUID()}`, { bearer: user.bearer })
    await service.api.get(`/invented/${randomUUID()}`)
    await page(service.api, `/api/v1/relay/active?connection_id=${randomUUID()}`, { method: 'PROPFIND' })
    await user.stop({ session_id, immediate: true })
    // A request is counted once it is answered, so the page's own count is seen by the next one.
    await metricsOf(service.api)

    const text = await eventually(
      () => metricsOf(service.api),
      (metrics) => /svc_relay_transitions_total\{.*from="grace"/.test(metrics),
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
    const bounded = [
      'channel',
      'endpoint',
      'failure',
      'role',
      'table',
      'clock',
      'from',
      'job',
      'kind',
      'le',
      'method',
      'operation',
      'outcome',
      'plan_status',
      'plan_tier',
      'provider',
      'reason',
      'region',
      'route',
      'state',
      'status',
      'to',
      'proof',
    ]
    for (const label of labels) expect(bounded).toContain(label)
  })

  test('includes the metrics of workers and the gauges from Postgres', async () => {
    const text = await metricsOf(service.api)
    const transitionCount = (from: string, to: string, reason: string) =>
      sampleOf(text, `svc_relay_transitions_total{from="${from}",reason="${reason}",region="local",to="${to}"}`)
    expect(transitionCount('provisioning', 'active', 'relay_ready')).toBe(1)
    expect(transitionCount('active', 'grace', 'stop_requested')).toBe(1)
    expect(transitionCount('grace', 'stopped', 'stop_requested')).toBe(1)
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

  test('sums the metrics of all workers, including ended ones, and counts only live workers', async () => {
    const { sql } = service.api
    const series = 'svc_relay_transitions_total{from="provisioning",reason="relay_ready",region="local",to="active"}'
    const before = sampleOf(await metricsOf(service.api), series) ?? 0
    await sql`insert into workers (id, heartbeat_at, metrics) select ${randomUUID()}, '-infinity', metrics from workers limit 1`
    const text = await metricsOf(service.api)
    expect(sampleOf(text, series)).toBe(2 * before)
    expect(sampleOf(text, 'svc_workers_alive')).toBe(1)
  })

  test('is valid Prometheus text', async () => {
    const answer = await page(service.api, '/metrics')
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const typed = new Set<string>()
    for (const line of (await answer.text()).split('\n').filter((text) => text !== '')) {
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

const programs = (count: number): [RelayProgram, ...RelayProgram[]] =>
  Array.from({ length: count }, (_, index) => {
    const code = Buffer.from(`console.log(${index})\n`)
    return {
      fileName: `relay-node-0.1.${index}-${createHash('sha256').update(code).digest('hex').slice(0, 12)}.mjs`,
      code,
    }
  }) as [RelayProgram, ...RelayProgram[]]

describe('GET /relay-node/<file name>', () => {
  test('serves the program of relays under the name of its content, for any cache', async () => {
    const { fileName, code } = await relayBundle()
    const answer = await page(service.api, `/relay-node/${fileName}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch('text/javascript')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(Buffer.from(await answer.arrayBuffer()).equals(code)).toBe(true)
  })

  test('serves the program of another version whose worker has started, and asks the database once for all names', async () => {
    const api = await startApi()
    const [other] = programs(1)
    await storeRelayProgram(api.sql, other)
    expect((await page(api, `/relay-node/${(await relayBundle()).fileName}`)).status).toBe(200)
    const answer = await page(api, `/relay-node/${other.fileName}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch('text/javascript')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(Buffer.from(await answer.arrayBuffer()).equals(other.code)).toBe(true)
    // A read would wait for the end of the transaction.
    await api.sql.begin(async (locking) => {
      await locking`lock table relay_programs in access exclusive mode`
      const statuses = programs(20).map(async ({ fileName }) => (await page(api, `/relay-node/${fileName}`)).status)
      expect(await Promise.all(statuses)).toEqual([200, ...Array(19).fill(404)])
    })
  })

  test.each(['relay-node-0.0.1-000000000000.mjs', 'main.ts', '..%2fpackage.json'])('has no file %s', async (name) => {
    const answer = await page(service.api, `/relay-node/${name}`)
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'not_found' } })
    expect(answer.headers.get('cache-control')).toBeNull()
  })
})
