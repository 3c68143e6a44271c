import { createSocket } from 'node:dgram'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually, startService, type TestService } from '../support/relays.ts'

const maxSessionMillis = 5000
let service: TestService

beforeAll(async () => {
  service = await startService({ variables: { SVC_RELAY_MAX_SESSION_SECONDS: String(maxSessionMillis / 1000) } })
})

/** Sends to the relay continuously, like a phone that streams. */
function sendStream(url: string, onTestFinished: (stop: () => void) => void): void {
  const { hostname, port } = new URL(url.replace(/^srt/, 'http'))
  const socket = createSocket('udp4')
  const timer = setInterval(() => socket.send('a packet', Number(port), hostname), 50)
  onTestFinished(() => {
    clearInterval(timer)
    socket.close()
  })
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
  test('ends when no stream comes in', async () => {
    const { session } = await service.activeRelay()
    const millis = await durationOf(session.session_id)
    expect(millis).toBeGreaterThanOrEqual(maxSessionMillis)
    expect(millis).toBeLessThan(maxSessionMillis * 1.5)
  })

  test('is not ended by an idle signal that arrives after a stream has begun', async ({ onTestFinished }) => {
    const { session } = await service.activeRelay()
    sendStream(session.connect?.srt_url ?? '', onTestFinished)
    await sleep(Date.parse(session.created_at) + maxSessionMillis + 500 - Date.now())
    for (let index = 0; index < 3; index += 1) await service.api.services.relaySessions.idle(session.session_id)
    await sleep(500)
    expect((await service.history(session.session_id)).session.state).toBe('active')
  })

  test('continues while a stream comes in, up to 1.5 times its maximum duration', async ({ onTestFinished }) => {
    const { session } = await service.activeRelay()
    sendStream(session.connect?.srt_url ?? '', onTestFinished)
    expect(await durationOf(session.session_id)).toBeGreaterThanOrEqual(maxSessionMillis * 1.5)
  })
})
