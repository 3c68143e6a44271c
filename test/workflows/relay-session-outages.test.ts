import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts'
import { untilWell } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'

let plane: ControlPlane
beforeAll(async () => {
  plane = await startControlPlane()
})

describe('while the control plane is unavailable', () => {
  test('no relay loses its health, although no report could be received for longer than the timeout', async () => {
    const user = await plane.paidUser()
    const { session } = (await user.start()).body
    await plane.untilState(session.session_id, 'active')
    const relaysBefore = plane.relays()
    await plane.api.kill()
    await sleep(8000)
    plane.api.start()
    await untilWell(plane.client.url)
    await sleep(4000)
    expect(await plane.history(session.session_id)).toMatchObject({
      session: { state: 'active' },
      transitions: [{ to: 'active' }],
    })
    expect(plane.relays()).toEqual(relaysBefore)
    await user.stop()
    await plane.untilState(session.session_id, 'stopped')
  })

  test('a grace that ends while no worker runs is ended by the next worker', async () => {
    const user = await plane.paidUser()
    const { session } = (await user.start()).body
    await plane.untilState(session.session_id, 'active')
    await user.stop(false)
    await plane.worker.kill()
    await sleep(4000)
    expect((await plane.history(session.session_id)).session.state).toBe('grace')
    plane.worker.start()
    await plane.untilState(session.session_id, 'stopped')
    await eventually(
      () => plane.relays(),
      (relays) => relays.length === 0,
    )
  })
})

describe('a start that was accepted just before', () => {
  const expectActiveAfter = async (outage: () => Promise<void>) => {
    const user = await plane.paidUser()
    const { status, body } = await user.start()
    expect(status).toBe(201)
    await outage()
    const { transitions } = await plane.untilState(body.session.session_id, 'active')
    expect(transitions).toMatchObject([{ from: 'provisioning', to: 'active' }])
    expect(plane.relays()).toHaveLength(1)
    await user.stop()
    await plane.untilState(body.session.session_id, 'stopped')
  }

  test('Postgres is unavailable for longer than the provisioning timeout becomes active afterwards', async () => {
    await expectActiveAfter(async () => {
      await plane.postgres.block()
      await sleep(12_000)
      await plane.postgres.open()
    })
  })

  test('no worker runs for longer than the provisioning timeout becomes active with the next worker', async () => {
    await expectActiveAfter(async () => {
      // Waits until its workflow has started, so that its timer runs while no worker does.
      await sleep(200)
      await plane.worker.kill()
      await sleep(12_000)
      plane.worker.start()
    })
  })
})
