/** Reports that are held open: when they are answered, and what their end says about their relay. */
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { fakeInstanceId } from '../../support/fake-relay-provider.ts'
import { type FakeRelayService, startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: longRelayTimeouts })
})

async function startActive(): Promise<string> {
  return (await service.startActiveRelay(await service.user())).session_id
}

/** Sends a report that may be held for 10 s, over a connection of its own. */
function hold(sessionId: string) {
  const { api } = service
  const [secret = ''] = api.services.config.relayAuthSecrets
  const body = JSON.stringify({ session_id: sessionId, instance_id: fakeInstanceId(sessionId), wait_seconds: 10 })
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-relay-auth': secret,
  }
  const asked = request(`${api.url}/api/v1/relay/health`, { method: 'POST', agent: false, headers })
  const startedAt = performance.now()
  const answered = new Promise<{ seconds: number; body: object } | undefined>((resolve) => {
    asked.on('error', () => resolve(undefined))
    asked.on('response', async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ seconds: (performance.now() - startedAt) / 1000, body: JSON.parse(text) as object })
    })
  })
  asked.end(body)
  return { answered, vanish: () => asked.destroy() }
}

const untilHeld = (count = 1) =>
  eventually(
    () => service.api.services.heldReports.countHeld(),
    (held) => held === count,
  )

/**
 * Resolves once a report is held. The notification that its session has become active may come late and answer one,
 * after which a relay reports again.
 */
async function holdFirst(sessionId: string) {
  for (;;) {
    const held = hold(sessionId)
    const isAnswered = await Promise.race([held.answered.then(() => true), untilHeld().then(() => false)])
    if (!isAnswered) return held
  }
}

const suspicionOf = async (sessionId: string) =>
  (
    await service.api.sql<{ isSuspect: boolean }[]>`
      select coalesce(suspect_since > last_report_at, false) as is_suspect from relay_health where session_id = ${sessionId}`
  )[0]?.isSuspect

describe('a held report', () => {
  test('is stored at once, and answered when its session changes', async () => {
    const sessionId = await startActive()
    const { answered } = await holdFirst(sessionId)
    const [row] = await service.api.sql`select is_held from relay_health where session_id = ${sessionId}`
    expect(row?.isHeld).toBe(true)
    await service.api.sql`update relay_sessions set active_at = now() where id = ${sessionId}`
    const answer = await answered
    expect(answer?.seconds).toBeLessThan(5)
    expect(answer?.body).toMatchObject({ state: 'active', desired: 'run', report_in_seconds: 0 })
    expect(await suspicionOf(sessionId)).toBe(false)
  })

  test('whose connection ends makes its relay suspect, and the next report takes that back', async () => {
    const sessionId = await startActive()
    const { answered, vanish } = await holdFirst(sessionId)
    vanish()
    await answered
    await eventually(
      () => suspicionOf(sessionId),
      (isSuspect) => isSuspect === true,
    )
    expect((await service.history(sessionId)).session.state).toBe('active')
    await service.sendReport(sessionId)
    expect(await suspicionOf(sessionId)).toBe(false)
  })

  test('is answered when another one of its relay comes, and its relay is not suspect', async () => {
    const sessionId = await startActive()
    const first = await holdFirst(sessionId)
    const second = hold(sessionId)
    expect((await first.answered)?.seconds).toBeLessThan(5)
    await untilHeld()
    expect(await suspicionOf(sessionId)).toBe(false)
    second.vanish()
    await second.answered
    await untilHeld(0)
  })

  test.each([
    ['its owner', (_: string, bearer: string) => service.api.get('/relay/active?watch=1', { bearer })],
    ['an operator', (sessionId: string) => service.history(sessionId)],
  ] as const)('is answered at the first look of %s, and later ones are answered after two seconds', async (_, look) => {
    const user = await service.user()
    const { session_id: sessionId } = await service.startActiveRelay(user)
    const first = await holdFirst(sessionId)
    await look(sessionId, user.bearer)
    expect((await first.answered)?.seconds).toBeLessThan(5)
    const later = await hold(sessionId).answered
    expect(later?.body).toMatchObject({ desired: 'run', report_in_seconds: 0 })
    expect(later?.seconds).toBeGreaterThan(1.7)
    expect(later?.seconds).toBeLessThan(5)
  })

  test('is answered at the stop of the process, and its end then is no suspicion', async () => {
    const sessionId = await startActive()
    const { answered } = await holdFirst(sessionId)
    await service.api.services.heldReports.stop()
    expect((await answered)?.body).toMatchObject({ desired: 'run' })
    await sleep(100)
    expect(await suspicionOf(sessionId)).toBe(false)
  })
})
