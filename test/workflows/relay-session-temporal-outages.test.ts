import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts'
import { untilWell } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'

let plane: ControlPlane
beforeAll(async () => {
  plane = await startControlPlane()
})

describe('while Temporal is unavailable', () => {
  test('a start is accepted, and executed afterwards', async () => {
    const user = await plane.paidUser()
    await plane.temporal.stop()
    const { status, body } = await user.start()
    expect(status).toBe(201)
    const health = await fetch(`${plane.client.url}/health`)
    expect(health.status).toBe(503)
    await plane.temporal.start()
    await plane.untilState(body.session.session_id, 'active')
    expect(plane.relays()).toHaveLength(1)
    await user.stop()
    await plane.untilState(body.session.session_id, 'stopped')
  })

  test('a stop is accepted, and executed afterwards', async () => {
    const user = await plane.paidUser()
    const { session } = (await user.start()).body
    await plane.untilState(session.session_id, 'active')
    await plane.temporal.stop()
    const startedAt = Date.now()
    const { status, body } = await user.stop()
    expect(status).toBe(200)
    expect(body.session.state).toBe('active')
    expect(Date.now() - startedAt).toBeLessThan(4000)
    await plane.temporal.start()
    await plane.untilState(session.session_id, 'stopped')
    await eventually(
      () => plane.relays(),
      (relays) => relays.length === 0,
    )
  })

  test('a start after a stop wins, whichever arrives first', async () => {
    const user = await plane.paidUser()
    const { session } = (await user.start()).body
    await plane.untilState(session.session_id, 'active')
    await plane.temporal.stop()
    await user.stop()
    const resumed = await user.start()
    expect(resumed.body.session.session_id).toBe(session.session_id)
    await plane.temporal.start()
    await plane.untilState(session.session_id, 'active')
    await sleep(6000)
    expect(await plane.history(session.session_id)).toMatchObject({
      session: { state: 'active' },
      transitions: [{ to: 'active' }],
    })
    await user.stop()
    await plane.untilState(session.session_id, 'stopped')
  })
})

describe('when Temporal comes back without its histories', () => {
  test('each live session gets a new workflow within a minute, including one that is provisioning', async () => {
    const [streaming, starting] = [await plane.paidUser(), await plane.paidUser()]
    const active = (await streaming.start()).body.session.session_id
    await plane.untilState(active, 'active')
    const provisioning = (await starting.start()).body.session.session_id
    await eventually(
      () => plane.history(provisioning),
      ({ live }) => live !== null,
    )
    await plane.temporal.stop()
    plane.temporal.deleteStore()
    await plane.temporal.start()
    await eventually(
      () => plane.history(active),
      ({ session, live }) => session.state === 'active' && live?.state === 'active',
    )
    await plane.untilState(provisioning, 'active')
    expect(plane.relays()).toHaveLength(2)
    for (const user of [streaming, starting]) await user.stop()
    await plane.untilState(active, 'stopped')
    await plane.untilState(provisioning, 'stopped')
  })

  test('a command for a live session restarts its workflow, which executes the command', async () => {
    const user = await plane.paidUser()
    const { session } = (await user.start()).body
    await plane.untilState(session.session_id, 'active')
    await plane.temporal.stop()
    plane.temporal.deleteStore()
    await plane.temporal.start()
    await untilWell(plane.client.url)
    await plane.worker.kill()
    plane.worker.start()
    expect((await user.stop()).status).toBe(200)
    await plane.untilState(session.session_id, 'stopped')
    await eventually(
      () => plane.relays(),
      (relays) => relays.length === 0,
    )
  })
})
