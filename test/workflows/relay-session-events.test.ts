/** The number of history events that a relay session costs. */
import { beforeAll, describe, expect, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import { untilAtRest } from '../support/workflows.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { SVC_RELAY_GRACE_SECONDS: '600', SVC_RELAY_STOP_GRACE_SECONDS: '600' },
  })
})

const handleOf = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))

/**
 * Resolves when the session is in the state and its workflow is at rest, with the number of events until then. Asks no
 * query of the workflow, since one that arrives during a task adds a task.
 */
const countEventsIn = async (sessionId: string, state: string): Promise<number> => {
  await eventually(
    () => service.api.sql`select from relay_sessions where id = ${sessionId} and state = ${state}`,
    ({ count }) => count === 1,
  )
  return (await untilAtRest(handleOf(sessionId))).historyLength
}

const isSilent = async (sessionId: string): Promise<boolean> => {
  const { healthTimeoutSeconds } = service.api.services.config.relay
  const { count } = await service.api.sql`
    select from relay_health
    where session_id = ${sessionId} and last_report_at < now() - make_interval(secs => ${healthTimeoutSeconds})`
  return count === 1
}

describe('the history of a relay session grows', () => {
  test('by at most 14 events for a loss of health and the return of the relay', async () => {
    const { session_id } = await service.startActiveRelay(await service.user())
    // The job repeats a signal that the workflow takes long to handle, and each one is an event.
    await service.api.sql`update jobs set due_at = now() + interval '1 hour' where name = 'watch_health'`
    const before = await countEventsIn(session_id, 'active')
    await eventually(
      () => isSilent(session_id),
      (isLost) => isLost,
    )
    await service.api.services.relaySessions.healthLost(session_id)
    await countEventsIn(session_id, 'grace')
    await service.sendReport(session_id)
    expect((await countEventsIn(session_id, 'active')) - before).toBeLessThanOrEqual(14)
  })

  test('by at most 16 events for a stop that is cancelled', async () => {
    const user = await service.user()
    const { session_id } = await service.startActiveRelay(user)
    const before = await countEventsIn(session_id, 'active')
    await user.stop({ session_id })
    await countEventsIn(session_id, 'grace')
    await user.start()
    expect((await countEventsIn(session_id, 'active')) - before).toBeLessThanOrEqual(16)
  })
})
