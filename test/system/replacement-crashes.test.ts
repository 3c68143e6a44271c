/**
 * A worker process is killed at each boundary of the replacement of a lost relay, and another one takes over. The
 * relays are servers of the double of Hetzner Cloud.
 */
import { expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { recordSuspicions } from '../../db/relay/health.ts'
import { watchBoundaries } from '../support/crash-boundaries.ts'
import { startProgram } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'
import {
  boundariesOfSession,
  type Fleet,
  listTransitions,
  serversOf,
  startFleet,
  takeoverSecondsMax,
  untilEnded,
  walkMillisMax,
} from './crashed-fleet.ts'

const untilState = ({ service }: Fleet, sessionId: string, isWanted: (session: SessionView) => boolean) =>
  eventually(async () => (await service.history(sessionId)).session as SessionView, isWanted, takeoverSecondsMax)

/** Starts a relay, turns the power of its server off, and stops the session once another one has taken over. */
async function loseAndReplace(fleet: Fleet): Promise<void> {
  const { service, cloud } = fleet
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  const { instance_id: lost } = await untilState(fleet, sessionId, ({ state }) => state === 'active')
  const server = cloud.project.servers().find(({ name }) => name === lost)
  if (server) server.isOff = true
  // The end of the connection of an open report, which these machines do not close.
  await recordSuspicions(service.api.sql, [{ id: sessionId, instanceId: lost ?? null, quietSeconds: 0 }])
  const { instance_id: found } = await untilState(
    fleet,
    sessionId,
    ({ state, instance_id }) => state === 'active' && instance_id !== lost,
  )
  expect(await serversOf(fleet, sessionId)).toContain(found)
  await user.stop({ session_id: sessionId, immediate: true })
  await untilEnded(fleet, sessionId)
  expect(await serversOf(fleet, sessionId)).toEqual([])
  expect(await listTransitions(fleet, sessionId)).toEqual([
    'active: relay_ready',
    'grace: health_lost',
    'active: health_restored',
    'grace: stop_requested',
    'stopped: stop_requested',
  ])
  expect(await service.api.sql`select from instances where session_id = ${sessionId}`).toHaveLength(2)
  expect(await service.api.sql`select from relay_replacements where session_id = ${sessionId}`).toHaveLength(1)
  expect(cloud.project.mostAtOnce('svc-session', sessionId)).toBeLessThanOrEqual(2)
  expect([...cloud.project.creations.values()].every((count) => count === 1)).toBe(true)
}

test('a worker that is killed at any boundary while a relay is lost and replaced is replaced, and leaves no server', {
  timeout: walkMillisMax,
}, async () => {
  const fleet = await startFleet(0, { SVC_RELAY_REPLACEMENT_SECONDS: '120' })
  const worker = startProgram('worker', fleet.variables)
  const boundaries = await watchBoundaries(worker, fleet.cloud, fleet.service.api.sql)
  const walked = await boundaries.walk(() => loseAndReplace(fleet))
  expect(walked).toEqual(expect.arrayContaining(boundariesOfSession))
  expect(fleet.cloud.project.servers()).toEqual([])
})
