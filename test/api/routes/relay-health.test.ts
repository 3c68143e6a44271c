import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { relaySessionWorkflowId } from '../../../workflows/messages.ts'
import { type ErrorBody, outcome } from '../../support/api.ts'
import { type FakeRelayService, fakeInstanceId, startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually, operator, type RelayUser, startService, type TestService } from '../../support/relays.ts'
import { untilAtRest } from '../../support/workflows.ts'

const [current, previous] = [randomBytes(48).toString('base64'), randomBytes(48).toString('base64')]
const variables = {
  SVC_RELAY_AUTH_SECRET: `${current},${previous}`,
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: '2',
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '4',
}

let service: FakeRelayService
/** Without a worker: no command is carried out. */
let still: TestService
beforeAll(async () => {
  service = await startFakeRelayService({ variables })
  still = await startService({ variables, worker: false })
})

interface Answer {
  readonly state: string
  readonly desired: string
  readonly report_in_seconds: number
}

const report = (body: object, at: TestService = service, secret: string | undefined = current) =>
  at.api.post<Answer & Partial<ErrorBody>>('/relay/health', body, {
    headers: secret === undefined ? {} : { 'X-Relay-Auth': secret },
  })
const reportOf = (sessionId: string, more: object = {}) =>
  report({ session_id: sessionId, instance_id: fakeInstanceId(sessionId), ...more })
const bind = (sessionId: string, instanceId: string) =>
  still.api.sql`update relay_sessions set instance_id = ${instanceId} where id = ${sessionId}`
const started = async (at: TestService, user?: RelayUser) => {
  const owner = user ?? (await at.user())
  return { user: owner, session: (await owner.start({ connection_id: randomUUID() })).body.session }
}
/** A session whose relay has reported, so that it is active. */
const activeRelay = async () => {
  const user = await service.user()
  return { user, session: await service.startActiveRelay(user) }
}

describe('a report', () => {
  test('is answered with the state, what is wanted, and when to come again', async () => {
    const { session } = await started(still)
    const answer = await report({ session_id: session.session_id, instance_id: 'i-1' }, still)
    expect([answer.status, answer.body]).toEqual([200, { state: 'provisioning', desired: 'run', report_in_seconds: 2 }])
  })

  test('of the bound instance makes the session active, and later ones change nothing', async () => {
    const { session } = await activeRelay()
    const { body } = await reportOf(session.session_id, {
      observed_at: new Date().toISOString(),
      stats: { groups: [{ connections: [{ addr: 'x' }], anything: 1 }], more: [] },
    })
    expect(body).toEqual({ state: 'active', desired: 'run', report_in_seconds: 2 })
  })

  test('that is one of many costs Temporal nothing', async () => {
    const { session } = await activeRelay()
    const { temporal, deliveries } = service.api.services
    const handle = temporal.workflow.getHandle(relaySessionWorkflowId(session.session_id))
    const historyLength = async () => {
      await deliveries.drain()
      return (await untilAtRest(handle)).historyLength
    }
    await reportOf(session.session_id)
    const before = await historyLength()
    for (let round = 0; round < 5; round += 1) expect((await reportOf(session.session_id)).status).toBe(200)
    expect(await historyLength()).toBe(before)
  })

  test('before the instance is bound is kept, and counts once it is', async () => {
    const { session } = await started(still)
    const { session_id } = session
    expect((await report({ session_id, instance_id: 'early' }, still)).status).toBe(200)
    const [row] = await still.api.sql`select instance_id from relay_health where session_id = ${session_id}`
    expect(row?.instanceId).toBe('early')
  })

  test('takes its session’s id in capitals', async () => {
    const { session } = await activeRelay()
    const { session_id } = session
    const answer = await report({ session_id: session_id.toUpperCase(), instance_id: fakeInstanceId(session_id) })
    expect([answer.status, answer.body.state]).toEqual([200, 'active'])
  })

  test('in a crowd of two hundred gets the answer that is its own', async () => {
    const [mine, theirs] = [await started(still), await started(still)]
    await bind(mine.session.session_id, 'mine')
    await bind(theirs.session.session_id, 'theirs')
    const asked = Array.from({ length: 200 }, (_, round) => {
      const cases = [
        [{ session_id: mine.session.session_id, instance_id: 'mine' }, 200],
        [{ session_id: theirs.session.session_id, instance_id: 'mine' }, 409],
        [{ session_id: randomUUID(), instance_id: 'mine' }, 404],
        [{ session_id: theirs.session.session_id, instance_id: 'theirs' }, 200],
      ] as const
      return cases[round % cases.length] ?? cases[0]
    })
    const answers = await Promise.all(asked.map(([body]) => report(body, still)))
    expect(answers.map((answer) => answer.status)).toEqual(asked.map(([, status]) => status))
  })

  test('says whether anyone sends, and so since when no one has', async () => {
    const { session } = await started(still)
    const say = (stats?: object) => report({ session_id: session.session_id, instance_id: 'i', stats }, still)
    const idleSince = async () =>
      (await still.api.sql`select idle_since from relay_health where session_id = ${session.session_id}`)[0]
        ?.idleSince as Date | null
    await say({ groups: [{ connections: [{}] }] })
    expect(await idleSince()).toBeNull()
    await say({ groups: [{ connections: [] }, {}] })
    const since = await idleSince()
    expect(since).toBeInstanceOf(Date)
    await say({ groups: [] })
    expect(await idleSince()).toEqual(since)
    await say()
    expect(await idleSince()).toBeNull()
  })
})

describe('a relay is believed', () => {
  test('with either secret of a rotation', async () => {
    const { session } = await started(still)
    const body = { session_id: session.session_id, instance_id: 'i-1' }
    expect((await report(body, still, current)).status).toBe(200)
    expect((await report(body, still, previous)).status).toBe(200)
  })

  test.each([undefined, '', 'wrong', `${current},${previous}`, `${current} ${current}`, current.toLowerCase()])(
    'but not with %s',
    async (secret) => {
      const { session } = await started(still)
      const answer = await report({ session_id: session.session_id, instance_id: 'i-1' }, still, secret ?? undefined)
      if (secret === undefined) return expect(answer.status).toBe(200)
      expect(outcome(answer)).toEqual([401, 'invalid_relay_auth'])
    },
  )

  test('and not without any, whatever it says', async () => {
    for (const body of [{ session_id: randomUUID(), instance_id: 'i' }, {}, '{'])
      expect(outcome(await still.api.post('/relay/health', body))).toEqual([401, 'invalid_relay_auth'])
  })
})

describe('a report is refused', () => {
  test('for a session that nobody knows', async () => {
    expect(outcome(await reportOf(randomUUID()))).toEqual([404, 'not_found'])
  })

  test('from another instance than the bound one, which is then looked for', async () => {
    const { session } = await activeRelay()
    await service.api.sql`update jobs set due_at = now() + interval '1 hour' where name = 'sweep_orphans'`
    const answer = await report({ session_id: session.session_id, instance_id: 'another' })
    expect(outcome(answer)).toEqual([409, 'instance_mismatch'])
    const [job] = await service.api
      .sql`select due_at <= now() + interval '1 minute' as due from jobs where name = 'sweep_orphans'`
    expect(job?.due).toBe(true)
    expect((await reportOf(session.session_id)).status).toBe(200)
    const [row] = await service.api.sql`select instance_id from relay_health where session_id = ${session.session_id}`
    expect(row?.instanceId).toBe(fakeInstanceId(session.session_id))
  })

  test('for a session that has stopped, and is not kept', async () => {
    const { user, session } = await activeRelay()
    const { session_id } = session
    await user.stop({ session_id, immediate: true })
    const last = () => service.api.sql`select last_report_at from relay_health where session_id = ${session_id}`
    const [before] = await last()
    expect(outcome(await reportOf(session_id))).toEqual([409, 'invalid_transition'])
    expect(outcome(await report({ session_id, instance_id: 'another' }))).toEqual([409, 'invalid_transition'])
    expect(await last()).toEqual([before])
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
    { session_id: randomUUID(), instance_id: 'i', stats: { groups: {} } },
    [],
  ])('when it is %j', async (body) => {
    expect(outcome(await report(body, still))).toEqual([400, 'invalid_request'])
  })
})

describe('a relay is told to stop', () => {
  test('once an operator disconnected it, though no worker runs to do so', async () => {
    const { session } = await started(still)
    const { session_id } = session
    await bind(session_id, 'i-1')
    const body = { session_id, instance_id: 'i-1' }
    expect((await report(body, still)).body.desired).toBe('run')
    const disconnected = await still.api.post(
      `/admin/sessions/${session_id}/disconnect`,
      { reason: 'abuse' },
      { headers: operator },
    )
    expect(disconnected.status).toBe(200)
    expect((await report(body, still)).body).toMatchObject({ state: 'provisioning', desired: 'stop' })
  })

  test('but not by a stop of its owner, who may come back within the grace', async () => {
    const { user, session } = await activeRelay()
    await user.stop({ session_id: session.session_id })
    expect((await reportOf(session.session_id)).body).toMatchObject({ state: 'grace', desired: 'run' })
    expect((await user.start({ connection_id: session.connection_id })).body.session.state).toBe('active')
  })
})

test('a relay that reports again within its grace is active again', async () => {
  const { user, session } = await activeRelay()
  await eventually(
    async () => (await user.active()).session?.reason,
    (reason) => reason === 'health_lost',
  )
  expect((await reportOf(session.session_id)).body.state).toBe('grace')
  const back = await eventually(
    async () => (await user.active()).session,
    (one) => one?.state === 'active',
  )
  expect(back).toMatchObject({ reason: 'health_restored', instance_id: session.instance_id })
})
