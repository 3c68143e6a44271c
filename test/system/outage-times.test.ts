/**
 * How long requests take, and what relays get through, while Postgres or Temporal does not answer. Judges real time.
 */

import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { requestLimits } from '../../db/connection.ts'
import { type Answer, statusAndCode } from '../support/api.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { findFreePort } from '../support/ports.ts'
import { eventually, operator, startService } from '../support/relays.ts'
import { testInRealTime } from './real-time.ts'

const measure = async <Value>(work: Promise<Value>): Promise<{ value: Value; millis: number }> => {
  const startedAt = performance.now()
  return { value: await work, millis: performance.now() - startedAt }
}

testInRealTime(
  'while Postgres hangs requests get 503 within 5 s, and then the worker continues and no relay is lost',
  async () => {
    const postgres = await startOwnPostgres()
    const relaySecret = randomBytes(48).toString('base64')
    const service = await startService({
      variables: { DATABASE_URL: postgres.url, SVC_RELAY_AUTH_SECRET: relaySecret },
      queryLimits: requestLimits,
    })
    const { api } = service
    const { user, session } = await service.activeRelay()
    const { bearer } = user
    const requests = (): Promise<Answer<object>>[] => [
      api.get('/auth/session', { bearer }),
      api.get('/relay/active', { bearer }),
      user.start({ connection_id: 'second' }),
      api.post('/auth/login', { email: user.email, password: user.password }),
      api.post('/auth/refresh', { refresh_token: 'x' }),
      api.get('/capacity/status'),
      api.get('/usage/current', { bearer }),
      api.post(
        '/relay/health',
        { session_id: randomUUID(), instance_id: 'i' },
        { headers: { 'X-Relay-Auth': relaySecret } },
      ),
    ]
    onTestFinished(() => postgres.thaw())
    await postgres.freeze()
    const livez = await measure(fetch(`${api.url}/livez`))
    expect([livez.value.status, livez.millis < 500]).toEqual([200, true])
    const health = await measure(fetch(`${api.url}/health`))
    expect([health.value.status, health.millis < 2000]).toEqual([503, true])
    const metrics = await measure(fetch(`${api.url}/metrics`))
    expect([metrics.value.status, metrics.millis < 5000]).toEqual([200, true])
    const pending: Promise<{ value: Answer<object>; millis: number }>[] = []
    // Repeated, so that some requests find batches and connections that already wait. All of it takes longer than the
    // timeout of a local activity and the health timeout of a relay.
    for (let round = 0; round < 6; round += 1) {
      pending.push(...requests().map((request) => measure(request)))
      await sleep(800)
    }
    const answers = await Promise.all(pending)
    for (const { value } of answers) expect(statusAndCode(value)).toEqual([503, 'temporarily_unavailable'])
    expect(Math.max(...answers.map(({ millis }) => millis))).toBeLessThan(5000)

    await postgres.thaw()
    const recovered = await measure(
      eventually(
        async () => (await api.get('/auth/session', { bearer })).status,
        (status) => status === 200,
      ),
    )
    expect(recovered.millis).toBeLessThan(5000)
    const { session: second } = await service.activeRelay(await service.user())
    expect(second.state).toBe('active')
    const { transitions } = await service.history(session.session_id)
    expect(transitions.map(({ reason }) => reason)).toEqual(['relay_ready'])
    expect((await user.active()).sessions).toContainEqual(
      expect.objectContaining({ session_id: session.session_id, state: 'active' }),
    )
    const thawedAt = Date.now()
    await eventually(
      async () =>
        (await api.get<{ jobs: { name: string; last_success_at: string }[] }>('/admin/jobs', { headers: operator }))
          .body.jobs,
      (jobs) =>
        ['deliver_commands', 'watch_health'].every((name) => {
          const job = jobs.find((candidate) => candidate.name === name)
          return Date.parse(job?.last_success_at ?? '') > thawedAt
        }),
    )
    expect((await fetch(`${api.url}/health`)).status).toBe(200)
  },
)

testInRealTime('while Temporal is unavailable starts and stops are accepted without delay', async () => {
  const service = await startService({
    worker: false,
    variables: { TEMPORAL_ADDRESS: `127.0.0.1:${await findFreePort()}` },
    queryLimits: requestLimits,
  })
  const user = await service.user()
  const started = await measure(user.start())
  expect([started.value.status, started.millis < 1500]).toEqual([201, true])
  const stopped = await measure(user.stop({ session_id: started.value.body.session.session_id }))
  expect([stopped.value.status, stopped.millis < 3000]).toEqual([200, true])
  const again = await measure(user.start())
  expect([again.value.status, again.millis < 3000]).toEqual([200, true])
  // The client's calls to Temporal have a limit of 10 s.
  expect((await measure(fetch(`${service.api.url}/metrics`))).millis).toBeLessThan(5000)
  expect((await measure(fetch(`${service.api.url}/health`))).millis).toBeLessThan(3000)
})
