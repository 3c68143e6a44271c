/**
 * Api, worker, Postgres and Temporal fail one after another, each for longer than the timeouts of the relays that run
 * meanwhile. The tests share one service and its relays, and run in this order.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type ControlPlane, type PaidUser, startControlPlane } from '../support/control-plane.ts'
import { untilWell } from '../support/programs.ts'
import { eventually, type OneSession } from '../support/relays.ts'

/**
 * Of sessions that are accepted just before an outage, which lasts longer. Their relay's process must start before it.
 */
const provisionSeconds = 12
const longerThanTimeout = provisionSeconds * 1000 + 500

interface StartedUser extends PaidUser {
  readonly sessionId: string
}

let plane: ControlPlane
let streaming: StartedUser
let pausing: StartedUser
let stopping: StartedUser
let resuming: StartedUser

beforeAll(async () => {
  plane = await startControlPlane({
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '30',
  })
})

const untilNoRelay = (sessionIds: readonly string[]) =>
  eventually(
    () => plane.relays(),
    (relays) => relays.every(({ sessionId = '' }) => !sessionIds.includes(sessionId)),
  )

const expectNothingHappened = async ({ sessionId }: StartedUser) =>
  expect(await plane.history(sessionId)).toMatchObject({
    session: { state: 'active' },
    transitions: [{ to: 'active' }],
  })

describe('when api and worker are killed at any point', () => {
  /** Each a few milliseconds ahead of the next. */
  const usersCount = 8
  const intervalMillis = 45

  /** Repeats the same request until it is answered, as a plugin does. */
  const untilAnswered = (send: () => Promise<{ readonly status: number; readonly body: OneSession }>) =>
    eventually(
      () => send().catch(() => undefined),
      (answer) => answer !== undefined && answer.status < 500,
    ).then((answer) => answer?.body.session.session_id ?? '')

  /** Sends one request per user at short intervals, and kills both programs while the requests are in progress. */
  async function killDuring<User>(users: readonly User[], send: (user: User) => Promise<string>, variables = {}) {
    const requests = users.map(async (user, index) => {
      await sleep(index * intervalMillis)
      return send(user)
    })
    await sleep(users.length * intervalMillis + 20)
    await Promise.all([plane.api.kill(), plane.worker.kill()])
    plane.api.start(variables)
    plane.worker.start(variables)
    const sessionIds = await Promise.all(requests)
    await untilWell(plane.client.url)
    return sessionIds
  }

  let users: StartedUser[]

  test('each accepted start becomes active on one relay', async () => {
    const starting = await Promise.all(Array.from({ length: usersCount }, () => plane.paidUser()))
    const sessionIds = await killDuring(starting, (user) => {
      const key = randomUUID()
      return untilAnswered(() => user.start({}, key))
    })
    expect(new Set(sessionIds).size).toBe(usersCount)
    for (const sessionId of sessionIds) await plane.untilState(sessionId, 'active')
    expect(
      plane
        .relays()
        .map(({ sessionId }) => sessionId)
        .toSorted(),
    ).toEqual(sessionIds.toSorted())
    users = starting.map((user, index) => ({ ...user, sessionId: sessionIds[index] ?? '' }))
  })

  test('each accepted stop leaves no relay, and the others run on', async () => {
    const [first, second, third, fourth, ...stopped] = users
    if (!first || !second || !third || !fourth) throw new Error('there are too few users')
    ;[streaming, pausing, stopping, resuming] = [first, second, third, fourth]
    // Sessions that start from now on have the short timeout, and workers look for outages as short as it needs.
    const variables = { SVC_RELAY_PROVISION_TIMEOUT_SECONDS: String(provisionSeconds) }
    await killDuring(stopped, (user) => untilAnswered(() => user.stop()), variables)
    for (const { sessionId } of stopped) {
      const { transitions } = await plane.untilState(sessionId, 'stopped')
      expect(transitions.map(({ to }) => to)).toEqual(['active', 'grace', 'stopped'])
    }
    await untilNoRelay(stopped.map(({ sessionId }) => sessionId))
    for (const user of [streaming, pausing, stopping, resuming]) await expectNothingHappened(user)
  })
})

test('no relay loses its health while the api is away, although no report could be received for longer than the timeout', async () => {
  const relaysBefore = plane.relays()
  await plane.api.kill()
  // As if it had been away for a minute.
  await plane.sql`update presence set since = since - interval '1 minute', seen_at = seen_at - interval '1 minute' where role = 'api'`
  await plane.sql`update relay_health set last_report_at = last_report_at - interval '1 minute'`
  await plane.sql`update relay_sessions set created_at = created_at - interval '1 minute', active_at = active_at - interval '1 minute'`
  await plane.runJob('watch_health')
  plane.api.start()
  await untilWell(plane.client.url)
  await plane.runJob('watch_health')
  await eventually(
    () => plane.sql`select from relay_health where last_report_at > now() - interval '5 seconds'`,
    ({ count }) => count === relaysBefore.length,
  )
  await plane.runJob('watch_health')
  for (const user of [streaming, pausing, stopping, resuming]) await expectNothingHappened(user)
  expect(plane.relays()).toEqual(relaysBefore)
})

describe('a start that was accepted just before an outage becomes active afterwards', () => {
  /**
   * Starts a relay whose reports do not arrive, and waits until its process exists, so that its workflow's timer runs.
   */
  async function startUnheard(): Promise<StartedUser> {
    const user = await plane.paidUser()
    await plane.reports.block()
    const { status, body } = await user.start()
    expect(status).toBe(201)
    const { session_id: sessionId } = body.session
    await eventually(
      () => plane.relays(),
      (relays) => relays.some((relay) => relay.sessionId === sessionId),
    )
    return { ...user, sessionId }
  }

  async function expectActive({ sessionId }: StartedUser): Promise<void> {
    const { transitions } = await plane.untilState(sessionId, 'active')
    expect(transitions).toMatchObject([{ from: 'provisioning', to: 'active' }])
    expect(plane.relays().filter((relay) => relay.sessionId === sessionId)).toHaveLength(1)
  }

  test('with the next worker, when none runs for longer than the provisioning timeout; a grace that ends meanwhile is ended', async () => {
    const user = await startUnheard()
    await pausing.stop(false)
    await plane.worker.kill()
    await sleep(longerThanTimeout)
    expect((await plane.history(pausing.sessionId)).session.state).toBe('grace')
    plane.worker.start()
    await plane.reports.open()
    await expectActive(user)
    await plane.untilState(pausing.sessionId, 'stopped')
    await user.stop()
    await plane.untilState(user.sessionId, 'stopped')
    await untilNoRelay([pausing.sessionId, user.sessionId])
  })

  test('when Postgres is unavailable for longer than the provisioning timeout', async () => {
    const user = await startUnheard()
    await plane.postgres.block()
    await sleep(longerThanTimeout)
    await plane.postgres.open()
    await plane.reports.open()
    await expectActive(user)
    await user.stop()
    await plane.untilState(user.sessionId, 'stopped')
  })
})

describe('while Temporal is unavailable, and after it', () => {
  let starting: StartedUser

  test('a start and a stop are accepted, and the last of several commands counts', async () => {
    const user = await plane.paidUser()
    await plane.temporal.stop()
    const started = await user.start()
    expect(started.status).toBe(201)
    starting = { ...user, sessionId: started.body.session.session_id }
    expect((await fetch(`${plane.client.url}/health`)).status).toBe(503)

    const startedAt = Date.now()
    const { status, body } = await stopping.stop()
    expect([status, body.session.state]).toEqual([200, 'active'])
    expect(Date.now() - startedAt).toBeLessThan(4000)

    await resuming.stop()
    const resumed = await resuming.start()
    expect(resumed.body.session.session_id).toBe(resuming.sessionId)
    await plane.temporal.start()
  })

  test('a start is executed', async () => {
    await plane.untilState(starting.sessionId, 'active')
    expect(plane.relays().filter(({ sessionId }) => sessionId === starting.sessionId)).toHaveLength(1)
  })

  test('a stop is executed', async () => {
    await plane.untilState(stopping.sessionId, 'stopped')
    await untilNoRelay([stopping.sessionId])
  })

  test('a start after a stop wins, whichever arrives first', async () => {
    await eventually(
      () => plane.sql`
        select from relay_sessions where id = ${resuming.sessionId} and command_delivered_seq = command_seq`,
      ({ count }) => count === 1,
    )
    await expectNothingHappened(resuming)
  })

  test('the relays that were live during all of these outages are so still, and end with a stop', async () => {
    const live = [streaming, starting, resuming]
    for (const user of live) await expectNothingHappened(user)
    expect(
      plane
        .relays()
        .map(({ sessionId }) => sessionId)
        .toSorted(),
    ).toEqual(live.map(({ sessionId }) => sessionId).toSorted())
    for (const user of live) await user.stop()
    for (const { sessionId } of live) await plane.untilState(sessionId, 'stopped')
    await untilNoRelay(live.map(({ sessionId }) => sessionId))
  })
})
