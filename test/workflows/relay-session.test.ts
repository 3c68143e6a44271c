import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually, freeze, startService, type TestService } from '../support/relays.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})

const stateOf = async (sessionId: string) => (await service.history(sessionId)).session.state
const transitionsOf = async (sessionId: string) =>
  (await service.history(sessionId)).transitions.map(
    ({ from, to, reason, initiator }) => `${from} → ${to}: ${reason} by ${initiator}`,
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
      () => stateOf(body.session.session_id),
      (state) => state === 'active',
    )
    expect(service.relaysOf(body.session.session_id)).toHaveLength(1)
    expect(await transitionsOf(body.session.session_id)).toEqual(['provisioning → active: relay_ready by relay'])
  })

  test('that is stopped is in grace and then ends without an instance', async () => {
    const { user, session } = await service.activeRelay()
    const { body } = await user.stop({ session_id: session.session_id })
    expect(body.session).toMatchObject({ state: 'grace', reason: 'stop_requested' })
    expect(body.session.grace_ends_at).not.toBeNull()
    await eventually(
      () => stateOf(session.session_id),
      (state) => state === 'stopped',
    )
    await eventually(
      () => service.relaysOf(session.session_id).length,
      (count) => count === 0,
    )
    expect(await transitionsOf(session.session_id)).toEqual([
      'provisioning → active: relay_ready by relay',
      'active → grace: stop_requested by user',
      'grace → stopped: grace_elapsed by timer',
    ])
  })

  test('that is started again within its stop grace keeps the same relay', async () => {
    const { user, session } = await service.activeRelay()
    const [pid] = service.relaysOf(session.session_id)
    await user.stop({ session_id: session.session_id })
    const restarted = await user.start()
    expect(restarted.status).toBe(200)
    expect(restarted.body.session).toMatchObject({
      session_id: session.session_id,
      state: 'active',
      reason: 'start_requested',
    })
    expect(service.relaysOf(session.session_id)).toEqual([pid])
  })

  test.for(['an immediate stop', 'a second stop'])('ends at once by %s, through grace', async (how) => {
    const { user, session } = await service.activeRelay()
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
    const { user, session } = await service.activeRelay()
    const [pid = 0] = service.relaysOf(session.session_id)
    const frozen = freeze(pid)
    await eventually(
      () => stateOf(session.session_id),
      (state) => state === 'grace',
    )
    frozen.thaw()
    await eventually(
      () => stateOf(session.session_id),
      (state) => state === 'active',
    )
    expect((await user.active()).session?.instance_id).toBe(session.instance_id)
    expect((await transitionsOf(session.session_id)).slice(-2)).toEqual([
      'active → grace: health_lost by system',
      'grace → active: health_restored by relay',
    ])
  })

  test('whose relay stays silent is stopped at the end of the grace', async () => {
    const { session } = await service.activeRelay()
    const [pid = 0] = service.relaysOf(session.session_id)
    process.kill(pid, 'SIGKILL')
    await eventually(
      () => stateOf(session.session_id),
      (state) => state === 'stopped',
    )
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
