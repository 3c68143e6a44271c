/** Health reports of relays: what they change, and which are refused. */
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { relaySessionWorkflowId } from '../../../../workflows/messages.ts'
import { type ErrorBody, statusAndCode } from '../../../support/api.ts'
import { fakeInstanceId } from '../../../support/fake-relay-provider.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, operator, startService, type TestService } from '../../../support/relays.ts'
import { untilAtRest } from '../../../support/workflows.ts'

const [currentSecret, previousSecret] = [randomBytes(48).toString('base64'), randomBytes(48).toString('base64')]
const variables = {
  SVC_RELAY_AUTH_SECRET: `${currentSecret},${previousSecret}`,
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: '2',
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '4',
}

let service: FakeRelayService
/** Without a worker, so that no command is carried out. */
let serviceWithoutWorker: TestService
beforeAll(async () => {
  service = await startFakeRelayService({ variables })
  serviceWithoutWorker = await startService({ variables, worker: false })
})

interface ReportReply {
  readonly state: string
  readonly desired: string
  readonly report_in_seconds: number
}

const report = (body: object, at: TestService = service, secret: string = currentSecret) =>
  at.api.post<ReportReply & Partial<ErrorBody>>('/relay/health', body, { headers: { 'X-Relay-Auth': secret } })
/** Reports as the bound instance of the session. */
const reportFor = (sessionId: string, fields: object = {}) =>
  report({ session_id: sessionId, instance_id: fakeInstanceId(sessionId), ...fields })
const bind = (sessionId: string, instanceId: string) =>
  serviceWithoutWorker.api.sql`update relay_sessions set instance_id = ${instanceId} where id = ${sessionId}`
const startSession = async () => (await (await serviceWithoutWorker.user()).start()).body.session
/** A session whose relay has reported, so that it is active. */
const startActiveRelay = async () => {
  const user = await service.user()
  return { user, session: await service.startActiveRelay(user) }
}

describe('a report', () => {
  test('before its instance is bound is repeated soon, so that the session does not wait for an interval', async () => {
    const session = await startSession()
    const response = await report({ session_id: session.session_id, instance_id: 'i-1' }, serviceWithoutWorker)
    expect([response.status, response.body]).toEqual([
      200,
      { state: 'provisioning', desired: 'run', report_in_seconds: 1, epoch: expect.any(String) },
    ])
  })

  test('of the bound instance makes the session active, and the next one returns the report interval', async () => {
    const { session } = await startActiveRelay()
    const { body } = await reportFor(session.session_id, {
      observed_at: new Date().toISOString(),
      stats: { groups: [{ connections: [{ addr: 'x' }], anything: 1 }], more: [] },
    })
    expect(body).toEqual({ state: 'active', desired: 'run', report_in_seconds: 2, epoch: expect.any(String) })
  })

  test('of an active session adds nothing to the history of its workflow', async () => {
    const { session } = await startActiveRelay()
    const { temporal, deliveries } = service.api.services
    const handle = temporal.workflow.getHandle(relaySessionWorkflowId(session.session_id))
    const historyLength = async () => {
      await deliveries.drain()
      return (await untilAtRest(handle)).historyLength
    }
    await reportFor(session.session_id)
    const before = await historyLength()
    for (let index = 0; index < 5; index += 1) expect((await reportFor(session.session_id)).status).toBe(200)
    expect(await historyLength()).toBe(before)
  })

  test('is stored before the instance is bound', async () => {
    const { session_id } = await startSession()
    expect((await report({ session_id, instance_id: 'early' }, serviceWithoutWorker)).status).toBe(200)
    const [row] = await serviceWithoutWorker.api
      .sql`select instance_id from relay_health where session_id = ${session_id}`
    expect(row?.instanceId).toBe('early')
  })

  test('accepts a session_id in upper case', async () => {
    const { session } = await startActiveRelay()
    const { session_id } = session
    const response = await report({ session_id: session_id.toUpperCase(), instance_id: fakeInstanceId(session_id) })
    expect([response.status, response.body.state]).toEqual([200, 'active'])
  })

  test('among two hundred concurrent reports gets its own response', async () => {
    const [session, otherSession] = [await startSession(), await startSession()]
    await bind(session.session_id, 'instance')
    await bind(otherSession.session_id, 'other-instance')
    const cases = [
      { body: { session_id: session.session_id, instance_id: 'instance' }, status: 200 },
      { body: { session_id: otherSession.session_id, instance_id: 'instance' }, status: 409 },
      { body: { session_id: randomUUID(), instance_id: 'instance' }, status: 404 },
      { body: { session_id: otherSession.session_id, instance_id: 'other-instance' }, status: 200 },
    ]
    const reports = Array.from({ length: 50 }, () => cases).flat()
    const responses = await Promise.all(reports.map(({ body }) => report(body, serviceWithoutWorker)))
    expect(responses.map(({ status }) => status)).toEqual(reports.map(({ status }) => status))
  })

  test('sets the time since when no stream comes in', async () => {
    const { session_id } = await startSession()
    const reportStats = (stats?: object) => report({ session_id, instance_id: 'i', stats }, serviceWithoutWorker)
    const findIdleSince = async () => {
      const [row] = await serviceWithoutWorker.api.sql<{ idleSince: Date | null }[]>`
        select idle_since from relay_health where session_id = ${session_id}`
      return row?.idleSince
    }
    await reportStats({ groups: [{ connections: [{}] }] })
    expect(await findIdleSince()).toBeNull()
    await reportStats({ groups: [{ connections: [] }, {}] })
    const idleSince = await findIdleSince()
    expect(idleSince).toBeInstanceOf(Date)
    await reportStats({ groups: [] })
    expect(await findIdleSince()).toEqual(idleSince)
    await reportStats()
    expect(await findIdleSince()).toBeNull()
  })
})

describe('the secret of relays', () => {
  test.each([
    ['the current', currentSecret],
    ['the previous', previousSecret],
  ])('is accepted if it is %s one', async (_, secret) => {
    const { session_id } = await startSession()
    expect((await report({ session_id, instance_id: 'i-1' }, serviceWithoutWorker, secret)).status).toBe(200)
  })

  test.each([
    '',
    'wrong',
    `${currentSecret},${previousSecret}`,
    `${currentSecret} ${currentSecret}`,
    currentSecret.toLowerCase(),
  ])('is refused if it is %j', async (secret) => {
    const { session_id } = await startSession()
    const response = await report({ session_id, instance_id: 'i-1' }, serviceWithoutWorker, secret)
    expect(statusAndCode(response)).toEqual([401, 'invalid_relay_auth'])
  })

  test('is required before the request body is checked', async () => {
    for (const body of [{ session_id: randomUUID(), instance_id: 'i' }, {}, '{'])
      expect(statusAndCode(await serviceWithoutWorker.api.post('/relay/health', body))).toEqual([
        401,
        'invalid_relay_auth',
      ])
  })
})

describe('a report is refused', () => {
  test('for an unknown session', async () => {
    expect(statusAndCode(await reportFor(randomUUID()))).toEqual([404, 'not_found'])
  })

  test('from an instance that is not the bound one, and triggers the sweep of orphans', async () => {
    const { session } = await startActiveRelay()
    await service.api.sql`update jobs set due_at = now() + interval '1 hour' where name = 'sweep_orphans'`
    const response = await report({ session_id: session.session_id, instance_id: 'another' })
    expect(statusAndCode(response)).toEqual([409, 'instance_mismatch'])
    const [job] = await service.api
      .sql`select due_at <= now() + interval '1 minute' as due from jobs where name = 'sweep_orphans'`
    expect(job?.due).toBe(true)
    expect((await reportFor(session.session_id)).status).toBe(200)
    const [row] = await service.api.sql`select instance_id from relay_health where session_id = ${session.session_id}`
    expect(row?.instanceId).toBe(fakeInstanceId(session.session_id))
  })

  test('for a stopped session, and is not stored', async () => {
    const { user, session } = await startActiveRelay()
    const { session_id } = session
    await user.stop({ session_id, immediate: true })
    const findLastReport = () =>
      service.api.sql`select last_report_at from relay_health where session_id = ${session_id}`
    const [before] = await findLastReport()
    expect(statusAndCode(await reportFor(session_id))).toEqual([409, 'invalid_transition'])
    expect(statusAndCode(await report({ session_id, instance_id: 'another' }))).toEqual([409, 'invalid_transition'])
    expect(await findLastReport()).toEqual([before])
  })

  test.each([
    {},
    { session_id: 'x', instance_id: 'i' },
    { session_id: randomUUID() },
    { session_id: randomUUID(), instance_id: '' },
    { session_id: randomUUID(), instance_id: 'i'.repeat(129) },
    { session_id: randomUUID(), instance_id: 'a\0b' },
    { session_id: randomUUID(), instance_id: 7 },
    { session_id: randomUUID(), instance_id: 'i', observed_at: 1_700_000_000 },
    { session_id: randomUUID(), instance_id: 'i', observed_at: 'yesterday' },
    { session_id: randomUUID(), instance_id: 'i', stats: [] },
    { session_id: randomUUID(), instance_id: 'i', stats: 'publishing' },
    { session_id: randomUUID(), instance_id: 'i', stats: null },
    [],
  ])('with the request body %j', async (body) => {
    expect(statusAndCode(await report(body, serviceWithoutWorker))).toEqual([400, 'invalid_request'])
  })
})

describe('a relay', () => {
  test('should stop once an operator has disconnected its session, even while no worker runs', async () => {
    const { session_id } = await startSession()
    await bind(session_id, 'i-1')
    const body = { session_id, instance_id: 'i-1' }
    expect((await report(body, serviceWithoutWorker)).body.desired).toBe('run')
    const disconnected = await serviceWithoutWorker.api.post(
      `/admin/sessions/${session_id}/disconnect`,
      { reason: 'abuse' },
      { headers: operator },
    )
    expect(disconnected.status).toBe(200)
    expect((await report(body, serviceWithoutWorker)).body).toMatchObject({ state: 'provisioning', desired: 'stop' })
  })

  test('should keep running in its stop grace, in which its owner may start it again', async () => {
    const { user, session } = await startActiveRelay()
    await user.stop({ session_id: session.session_id })
    expect((await reportFor(session.session_id)).body).toMatchObject({ state: 'grace', desired: 'run' })
    expect((await user.start({ connection_id: session.connection_id })).body.session.state).toBe('active')
  })
})

test('a report during the grace for lost health makes the session active again', async () => {
  const { user, session } = await startActiveRelay()
  await eventually(
    async () => (await user.active()).session?.reason,
    (reason) => reason === 'health_lost',
  )
  expect((await reportFor(session.session_id)).body.state).toBe('grace')
  const restored = await eventually(
    async () => (await user.active()).session,
    (found) => found?.state === 'active',
  )
  expect(restored).toMatchObject({ reason: 'health_restored', instance_id: session.instance_id })
})
