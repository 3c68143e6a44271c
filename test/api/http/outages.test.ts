/** The API while Temporal, Postgres or all workers are unavailable. */
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startApi as startListening } from '../../../api/start-api.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { readConfig } from '../../../platform/config/config.ts'
import { Lifecycle } from '../../../platform/lifecycle.ts'
import { createLog } from '../../../platform/log.ts'
import { type Client, startApi, statusAndCode, type TestApi } from '../../support/api.ts'
import { testEnvironment } from '../../support/environment.ts'
import { findFreePort } from '../../support/ports.ts'
import {
  eventually,
  type OneSession,
  operator,
  passageTo,
  startService,
  type TestService,
} from '../../support/relays.ts'

const relaySecret = randomBytes(48).toString('base64')
const page = (at: Client, path: string, request?: RequestInit) => fetch(`${at.url}${path}`, request)

describe('while Temporal is unavailable', () => {
  let alone: TestService
  beforeAll(async () => {
    alone = await startService({ worker: false, variables: { TEMPORAL_ADDRESS: `127.0.0.1:${await findFreePort()}` } })
  })

  test('starts and stops are accepted', async () => {
    const user = await alone.user()
    const started = await user.start()
    expect(started.status).toBe(201)
    const stopped = await user.stop({ session_id: started.body.session.session_id })
    expect([stopped.status, stopped.body.session.state]).toEqual([200, 'provisioning'])
    expect((await user.start()).status).toBe(200)
    const [row] = await alone.api.sql`select command, command_seq, command_delivered_seq from relay_sessions`
    expect(row).toEqual({ command: 'run', commandSeq: 3, commandDeliveredSeq: 0 })
    expect((await user.active()).sessions).toHaveLength(1)
  })

  test('the api is ready', async () => {
    const answer = await page(alone.api, '/readyz')
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'ready' }])
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('the metrics page is complete', async () => {
    const answer = await page(alone.api, '/metrics')
    const text = await answer.text()
    expect(answer.status).toBe(200)
    expect(text).toMatch(/^svc_metrics_complete 1$/m)
    expect(text).toMatch(/^svc_relay_commands_undelivered \d+$/m)
  })

  test('operators can inspect and disconnect a session, but not request a transition', async () => {
    const user = await alone.user()
    const { session_id } = (await user.start()).body.session
    const admin = `/admin/sessions/${session_id}`
    const [shown, transition, ended] = await Promise.all([
      alone.history(session_id),
      alone.api.post(`${admin}/transition`, { to: 'active' }, { headers: operator }),
      alone.api.post<OneSession>(`${admin}/disconnect`, { reason: 'x' }, { headers: operator }),
    ])
    expect(shown).toMatchObject({ session: { state: 'provisioning' }, live: null })
    expect(statusAndCode(transition)).toEqual([503, 'temporarily_unavailable'])
    expect([ended.status, ended.body.session.state]).toEqual([200, 'provisioning'])
  })

  test('operators see an account without the snapshot of its workflow, and why it is missing', async () => {
    const { userId, email } = await alone.user()
    const { status, body } = await alone.api.get(`/admin/users/${userId}`, { headers: operator })
    expect(status).toBe(200)
    expect(body).toMatchObject({ user: { email }, subscription: { live: null, live_missing: 'no_answer' } })
  })
})

describe('while Postgres is unavailable', () => {
  /** An API whose connection to its database can be blocked. */
  const behindPassage = async () => {
    const direct = await startApi()
    const passage = await passageTo(direct.services.config.database.url)
    const api = await startApi({ DATABASE_URL: passage.url, SVC_RELAY_AUTH_SECRET: relaySecret })
    return { api, passage, user: await api.given.user() }
  }

  test('every request that needs it is answered with 503 and Retry-After, and succeeds after it is available again', async () => {
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
      expect(statusAndCode(answer)).toEqual([503, 'temporarily_unavailable'])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(statusAndCode(await api.get('/nowhere'))).toEqual([404, 'not_found'])
    expect((await page(api, '/livez')).status).toBe(200)
    const health = await page(api, '/health')
    expect([health.status, await health.json()]).toMatchObject([503, { checks: { postgres: 'failing' } }])
    const metrics = await page(api, '/metrics')
    expect(metrics.status).toBe(200)
    const text = await metrics.text()
    expect(text).toMatch(/^svc_metrics_complete 0$/m)
    expect(text).toMatch(/svc_http_requests_total\{.*status="503"\} \d/)

    await passage.open()
    await eventually(
      async () => (await api.get('/auth/session', { bearer })).status,
      (status) => status === 200,
    )
    expect((await Promise.all(requests())).map(({ status }) => status)).toEqual([
      200, 200, 403, 200, 401, 201, 200, 404,
    ])
  })

  test('a connection that is lost during a query causes 503, not 500', async () => {
    const { api, passage, user } = await behindPassage()
    const statuses = new Map<number, number>()
    let breaks = 0
    const isSeen = () => breaks >= 10 && (statuses.get(200) ?? 0) > 0 && (statuses.get(503) ?? 0) > 0
    const ask = async (path: string, key?: string) => {
      while (!isSeen()) {
        const asking = { bearer: user.bearer, ...(key ? { headers: { 'Idempotency-Key': randomUUID() } } : {}) }
        const { status } = await (key ? api.post(path, {}, asking) : api.get(path, asking))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    const breaking = (async () => {
      while (!isSeen()) {
        await api.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`.catch(
          () => undefined,
        )
        await passage.block()
        await passage.open()
        breaks += 1
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

  test('the process starts, waits for it and reports that it is not ready', async () => {
    const database = await startApi()
    const passage = await passageTo(database.services.config.database.url)
    await passage.block()
    const config = readConfig(testEnvironment({ DATABASE_URL: passage.url, PORT: '0' }))
    const log = createLog('api', 'silent')
    const life = new Lifecycle(log)
    const sql = life.hold('connections', connectPostgres(config.database.url, 2), (it) => it.end({ timeout: 1 }))
    const { port, ready } = await startListening({ config, log, sql, life })
    const api = { url: `http://127.0.0.1:${port}` } as TestApi
    const early = await page(api, '/api/v1/capacity/status')
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '2'])
    expect((await page(api, '/livez')).status).toBe(200)
    expect((await page(api, '/docs')).status).toBe(200)
    const readiness = async () => {
      const answer = await page(api, '/readyz')
      return [answer.status, await answer.json()]
    }
    expect(await readiness()).toEqual([503, { status: 'starting' }])
    await passage.open()
    await ready
    expect(await readiness()).toEqual([200, { status: 'ready' }])
    await passage.block()
    expect(await readiness()).toEqual([200, { status: 'ready' }])
    await passage.open()
    expect((await page(api, '/api/v1/capacity/status')).status).toBe(200)
    await life.stop()
  })
})
