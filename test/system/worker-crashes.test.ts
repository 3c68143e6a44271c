/**
 * A worker process is killed at each boundary of provisioning, assignment and teardown, and another one takes over. The
 * relays are servers of the double of Hetzner Cloud.
 */
import { describe, expect, test } from 'vitest'
import { watchBoundaries } from '../support/crash-boundaries.ts'
import { startProgram } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'
import {
  boundariesOfCreation,
  boundariesOfDestruction,
  boundariesOfSession,
  type Fleet,
  listTransitions,
  serversOf,
  startFleet,
  takeoverSecondsMax,
  untilEnded,
  walkMillisMax,
} from './crashed-fleet.ts'

/** What must be true once a session has ended. */
async function expectClean(fleet: Fleet, sessionId: string, transitions: readonly string[]): Promise<void> {
  const { service, cloud } = fleet
  await untilEnded(fleet, sessionId)
  expect(await serversOf(fleet, sessionId)).toEqual([])
  expect(await listTransitions(fleet, sessionId)).toEqual(transitions)
  expect(await service.api.sql`select from instances where session_id = ${sessionId}`).toHaveLength(1)
  expect(cloud.project.mostAtOnce('svc-session', sessionId)).toBeLessThanOrEqual(1)
  expect([...cloud.project.creations.values()].every((count) => count === 1)).toBe(true)
}

/** Starts a relay and stops it once it is active. */
async function startAndStop(fleet: Fleet): Promise<void> {
  const { service } = fleet
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  await eventually(
    async () => (await service.history(sessionId)).session.state,
    (state) => state === 'active',
    takeoverSecondsMax,
  )
  expect(await serversOf(fleet, sessionId)).toHaveLength(1)
  await user.stop({ session_id: sessionId, immediate: true })
  await expectClean(fleet, sessionId, ['active: relay_ready', 'grace: stop_requested', 'stopped: stop_requested'])
}

/** Passes over the time in which the provider may not list what it created: the double lists it at once. */
const skipListLag = async ({ service }: Fleet, sessionId: string) =>
  service.api.sql`
    update instances set create_attempted_at = create_attempted_at - interval '61 seconds'
    where session_id = ${sessionId}`

/** Resolves when the region has one warm instance, which waits for a session, and no other instance. */
async function untilWarm({ service, cloud }: Fleet): Promise<void> {
  await eventually(
    async () => {
      const rows = await service.api.sql<{ instanceId: string; isReady: boolean }[]>`
        select instance_id, session_id is null and retired_at is null and launched_at is not null
          and last_report_at > now() - interval '7 seconds' as is_ready
        from instances where gone_at is null`
      return { rows, servers: cloud.project.servers().map(({ name }) => name) }
    },
    ({ rows: [warm, ...others], servers }) =>
      warm?.isReady === true && others.length === 0 && servers.join() === warm.instanceId,
    takeoverSecondsMax,
  )
}

describe.concurrent('a worker that is killed at any boundary is replaced, and leaves one server or none', () => {
  test('while a relay starts on a new instance and is stopped', { timeout: walkMillisMax }, async () => {
    const fleet = await startFleet(0)
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, fleet.cloud, fleet.service.api.sql)
    const walked = await boundaries.walk(() => startAndStop(fleet))
    expect(walked).toEqual(expect.arrayContaining(boundariesOfSession))
    expect(fleet.cloud.project.servers()).toEqual([])
  })

  test('while a relay starts on a warm instance, which is replaced, and is stopped', {
    timeout: walkMillisMax,
  }, async () => {
    const fleet = await startFleet(1)
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, fleet.cloud, fleet.service.api.sql)
    await untilWarm(fleet)
    const walked = await boundaries.walk(async () => {
      await startAndStop(fleet)
      await untilWarm(fleet)
    })
    expect(walked).toEqual(expect.arrayContaining(boundariesOfSession))
  })

  test('while a relay is stopped during its creation, which the provider performs all the same', {
    timeout: walkMillisMax,
  }, async () => {
    const fleet = await startFleet(0)
    const { service, cloud } = fleet
    let stopDuringCreation = async () => {}
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, cloud, service.api.sql, async (stage, { method }) => {
      if (stage === 'received' && method === 'POST') await stopDuringCreation()
      return undefined
    })
    const walked = await boundaries.walk(async () => {
      const user = await service.user()
      let stopping: Promise<unknown> | undefined
      let isStopped = false
      stopDuringCreation = async () => {
        stopping ??= user.stop({ connection_id: 'default', immediate: true })
        await stopping
        isStopped = true
      }
      const { session_id: sessionId } = (await user.start()).body.session
      await eventually(() => isStopped, Boolean, takeoverSecondsMax)
      await skipListLag(fleet, sessionId)
      await expectClean(fleet, sessionId, ['stopped: stop_requested'])
    })
    // The cancellation of the call may come before its reply.
    const certain = boundariesOfCreation.slice(0, 4)
    expect(walked).toEqual(expect.arrayContaining([...certain, 'transition to stopped', ...boundariesOfDestruction]))
    expect(cloud.project.servers()).toEqual([])
  })
})
