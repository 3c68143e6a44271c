import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { eventually } from '../support/relays.ts'

const maxSessionMillis = 5000
let service: FakeRelayService

beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { SVC_RELAY_MAX_SESSION_SECONDS: String(maxSessionMillis / 1000) },
  })
})

/** An active relay that reports continuously whether a stream comes in. */
async function startReportingRelay(
  { publishing }: { publishing: boolean },
  onTestFinished: (stop: () => void) => void,
) {
  const session = await service.startActiveRelay(await service.user())
  const stats = {
    publishing,
    bitrate_kbps: publishing ? 5000 : 0,
    links: publishing ? 1 : 0,
    players: 0,
    bytes_total: 0,
  }
  const timer = setInterval(() => void service.sendReport(session.session_id, { stats }), 250)
  onTestFinished(() => clearInterval(timer))
  return session
}

/** The duration of a session in milliseconds, once a timer has ended it. */
const durationOf = async (sessionId: string): Promise<number> => {
  const { session, transitions } = await eventually(
    () => service.history(sessionId),
    (history) => history.session.state === 'stopped',
  )
  expect(transitions.slice(-2)).toMatchObject([
    { from: 'active', to: 'grace', reason: 'force_disconnected', initiator: 'timer' },
    { from: 'grace', to: 'stopped', reason: 'force_disconnected', initiator: 'timer' },
  ])
  return Date.parse(session.stopped_at ?? '') - Date.parse(session.created_at)
}

describe.concurrent('a session that is older than the longest duration', () => {
  test('ends when no stream comes in', async ({ onTestFinished }) => {
    const session = await startReportingRelay({ publishing: false }, onTestFinished)
    const millis = await durationOf(session.session_id)
    expect(millis).toBeGreaterThanOrEqual(maxSessionMillis)
    expect(millis).toBeLessThan(maxSessionMillis * 1.5)
  })

  test('is not ended by an idle signal that arrives after a stream has begun', async ({ onTestFinished }) => {
    const session = await startReportingRelay({ publishing: true }, onTestFinished)
    await sleep(Date.parse(session.created_at) + maxSessionMillis + 500 - Date.now())
    for (let index = 0; index < 3; index += 1) await service.api.services.relaySessions.idle(session.session_id)
    await sleep(500)
    expect((await service.history(session.session_id)).session.state).toBe('active')
  })

  test('continues while a stream comes in, up to 1.5 times its maximum duration', async ({ onTestFinished }) => {
    const session = await startReportingRelay({ publishing: true }, onTestFinished)
    expect(await durationOf(session.session_id)).toBeGreaterThanOrEqual(maxSessionMillis * 1.5)
  })
})
