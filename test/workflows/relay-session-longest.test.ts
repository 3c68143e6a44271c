/** The longest duration of a session, and when it ends a session. */
import { beforeAll, describe, expect, test } from 'vitest'
import * as messages from '../../workflows/messages.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

const maxSessionSeconds = 7200
let service: FakeRelayService

beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { ...longRelayTimeouts, SVC_RELAY_MAX_SESSION_SECONDS: String(maxSessionSeconds) },
  })
})

const handleOf = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
const stateOf = async (sessionId: string) => (await service.history(sessionId)).session.state

const report = (sessionId: string, publishing: boolean) =>
  service.sendReport(sessionId, {
    stats: { publishing, bitrate_kbps: publishing ? 5000 : 0, links: publishing ? 1 : 0, players: 0, bytes_total: 0 },
  })

const idleSince = (sessionId: string, seconds: number) => service.api.sql`
  update relay_health set idle_since = now() - make_interval(secs => ${seconds}) where session_id = ${sessionId}`

interface Start {
  readonly publishing: boolean
  readonly ageSeconds: number
  /** How long no stream has come in. */
  readonly idleSeconds?: number
}

/**
 * An active relay of this age that has reported whether a stream comes in. A workflow reads when its session was
 * created at its start, so another one is started.
 */
async function startRelay({ publishing, ageSeconds, idleSeconds = 600 }: Start): Promise<string> {
  const { session_id: sessionId } = await service.startActiveRelay(await service.user())
  await report(sessionId, publishing)
  if (!publishing) await idleSince(sessionId, idleSeconds)
  await service.api.sql`
    update relay_sessions set created_at = now() - make_interval(secs => ${ageSeconds}) where id = ${sessionId}`
  await handleOf(sessionId).terminate('the test restarts it')
  await eventually(
    async () => {
      await service.runJob('restart_workflows')
      return handleOf(sessionId).describe()
    },
    ({ status }) => status.name === 'RUNNING',
  )
  return sessionId
}

/** Resolves when the workflow has handled all signals that it received. */
const untilHandled = (sessionId: string) =>
  eventually(
    () => handleOf(sessionId).describe(),
    ({ raw }) => !raw.pendingWorkflowTask,
  )

const untilEndedByTimer = async (sessionId: string): Promise<void> => {
  const { transitions } = await eventually(
    () => service.history(sessionId),
    (history) => history.session.state === 'stopped',
  )
  expect(transitions.slice(-2)).toMatchObject([
    { from: 'active', to: 'grace', reason: 'force_disconnected', initiator: 'timer' },
    { from: 'grace', to: 'stopped', reason: 'force_disconnected', initiator: 'timer' },
  ])
}

describe.concurrent('a session through which no stream comes in', () => {
  test('ends when it is older than the longest duration, and not before', async () => {
    const younger = await startRelay({ publishing: false, ageSeconds: maxSessionSeconds / 2 })
    const older = await startRelay({ publishing: false, ageSeconds: maxSessionSeconds + 60 })
    await service.runJob('watch_health')
    await untilEndedByTimer(older)
    expect(await service.api.services.relaySessions.idle(younger)).toBe(true)
    await untilHandled(younger)
    expect(await stateOf(younger)).toBe('active')
  })
})

describe.concurrent('a session whose stream has a break', () => {
  test('goes on, also when it is signalled as idle, and ends after ten minutes without a stream', async () => {
    const sessionId = await startRelay({ publishing: false, ageSeconds: maxSessionSeconds + 60, idleSeconds: 0 })
    await service.runJob('watch_health')
    expect(await service.api.services.relaySessions.idle(sessionId)).toBe(true)
    await untilHandled(sessionId)
    expect(await stateOf(sessionId)).toBe('active')

    await idleSince(sessionId, 601)
    await report(sessionId, false)
    await service.runJob('watch_health')
    await untilEndedByTimer(sessionId)
  })
})

describe.concurrent('a session through which a stream comes in', () => {
  test('is not ended by an idle signal that arrives after the stream has begun, nor by its age', async () => {
    const sessionId = await startRelay({ publishing: true, ageSeconds: maxSessionSeconds * 1.4 })
    await service.runJob('watch_health')
    for (let index = 0; index < 3; index += 1)
      expect(await service.api.services.relaySessions.idle(sessionId)).toBe(true)
    await untilHandled(sessionId)
    expect(await stateOf(sessionId)).toBe('active')
  })

  test('ends at 1.5 times the longest duration', async () => {
    await untilEndedByTimer(await startRelay({ publishing: true, ageSeconds: maxSessionSeconds * 1.5 }))
  })
})
