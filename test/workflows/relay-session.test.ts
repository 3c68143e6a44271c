/** The life of a relay session, from its start to its end. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { endGrace, makeSilent } from '../support/relay-jobs.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_RELAY_GRACE_SECONDS: '600', SVC_RELAY_STOP_GRACE_SECONDS: '600' },
  })
})

async function activeRelay() {
  const user = await service.user()
  return { user, session: await service.startActiveRelay(user) }
}
const instancesOf = (sessionId: string) => service.relayProvider.list({ sessionId })
const untilState = (sessionId: string, state: string) =>
  eventually(
    () => stateOf(sessionId),
    (current) => current === state,
  )

const stateOf = async (sessionId: string) => (await service.history(sessionId)).session.state
const transitionsOf = async (sessionId: string) =>
  (await service.history(sessionId)).transitions.map(
    ({ from, to, reason, initiator }) => `${from} → ${to}: ${reason} by ${initiator}`,
  )

/** Resolves when the silence of the relay has been noticed. */
const loseHealth = (sessionId: string) =>
  eventually(
    async () => {
      await makeSilent(service.api, [sessionId])
      await service.runJob('watch_health')
      return stateOf(sessionId)
    },
    (state) => state === 'grace',
  )

describe('a relay session', () => {
  test('is provisioning when accepted, and active after the first report', async () => {
    const user = await service.user()
    const { status, body } = await user.start()
    expect(status).toBe(201)
    expect(body.session).toMatchObject({
      state: 'provisioning',
      reason: 'start_requested',
      instance_id: null,
      connect: null,
    })
    await eventually(
      async () => (await user.active()).session,
      (session) => session?.instance_id != null,
    )
    expect(await stateOf(body.session.session_id)).toBe('provisioning')
    await service.sendReport(body.session.session_id)
    await untilState(body.session.session_id, 'active')
    expect(await instancesOf(body.session.session_id)).toHaveLength(1)
    expect(await transitionsOf(body.session.session_id)).toEqual(['provisioning → active: relay_ready by relay'])
  })

  test('that is stopped is in grace and then ends without an instance', async () => {
    const { user, session } = await activeRelay()
    const { body } = await user.stop({ session_id: session.session_id })
    expect(body.session).toMatchObject({ state: 'grace', reason: 'stop_requested' })
    expect(body.session.grace_ends_at).not.toBeNull()
    await endGrace(service.api, session.session_id)
    await untilState(session.session_id, 'stopped')
    await eventually(
      () => instancesOf(session.session_id),
      (instances) => instances.length === 0,
    )
    expect(await transitionsOf(session.session_id)).toEqual([
      'provisioning → active: relay_ready by relay',
      'active → grace: stop_requested by user',
      'grace → stopped: grace_elapsed by timer',
    ])
  })

  test('that is started again within its stop grace keeps the same relay', async () => {
    const { user, session } = await activeRelay()
    const before = await instancesOf(session.session_id)
    await user.stop({ session_id: session.session_id })
    const restarted = await user.start()
    expect(restarted.status).toBe(200)
    expect(restarted.body.session).toMatchObject({
      session_id: session.session_id,
      state: 'active',
      reason: 'start_requested',
    })
    expect(await instancesOf(session.session_id)).toEqual(before)
  })

  test.for(['an immediate stop', 'a second stop'])('ends at once by %s, through grace', async (how) => {
    const { user, session } = await activeRelay()
    const address = { session_id: session.session_id }
    if (how === 'a second stop') await user.stop(address)
    const { body } = await user.stop({ ...address, immediate: how === 'an immediate stop' })
    expect(body.session).toMatchObject({ state: 'stopped', reason: 'stop_requested' })
    expect(body.session).not.toHaveProperty('pair_token')
    expect((await transitionsOf(session.session_id)).slice(-2)).toEqual([
      'active → grace: stop_requested by user',
      'grace → stopped: stop_requested by user',
    ])
  })

  test('whose relay is silent is in grace, and active again on the same instance when it reports', async () => {
    const { user, session } = await activeRelay()
    await loseHealth(session.session_id)
    await service.sendReport(session.session_id)
    await untilState(session.session_id, 'active')
    expect((await user.active()).session?.instance_id).toBe(session.instance_id)
    expect((await transitionsOf(session.session_id)).slice(-2)).toEqual([
      'active → grace: health_lost by system',
      'grace → active: health_restored by relay',
    ])
  })

  test('whose relay stays silent is stopped at the end of the grace', async () => {
    const { session } = await activeRelay()
    await loseHealth(session.session_id)
    await endGrace(service.api, session.session_id)
    await untilState(session.session_id, 'stopped')
    expect((await transitionsOf(session.session_id)).slice(-2)).toEqual([
      'active → grace: health_lost by system',
      'grace → stopped: grace_elapsed by timer',
    ])
  })

  test('that is started twenty times concurrently for one connection has one relay', async () => {
    const user = await service.user()
    const responses = await Promise.all(Array.from({ length: 20 }, () => user.start({}, randomUUID())))
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
    expect(new Set(responses.map(({ body }) => body.session.session_id)).size).toBe(1)
  })
})
