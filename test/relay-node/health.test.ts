import { describe, expect, test } from 'vitest'
import { judge, pauseMillis } from '../../relay-node/health.ts'
import { refusal, run, stop } from './control-plane.ts'
import { endOf, eventually, givenControlPlane, secret, startRelay } from './running.ts'

test('a relay reports at once, with its secret, its session and its instance, and goes on at the pace it is told', async () => {
  const plane = await givenControlPlane()
  plane.answers(run(0.3))
  const relay = startRelay({ apiUrl: plane.url, intervalSeconds: 60 })

  await eventually(
    () => plane.reports.length,
    (count) => count >= 4,
  )

  const [first, second, third, fourth] = plane.reports
  expect(first).toMatchObject({
    secret,
    body: { session_id: relay.sessionId, instance_id: relay.instanceId, stats: { groups: [] } },
  })
  expect(Date.parse(first?.body.observed_at ?? '')).toBeGreaterThan(Date.now() - 10_000)
  for (const [earlier, later] of [
    [second, third],
    [third, fourth],
  ]) {
    expect((later?.at ?? 0) - (earlier?.at ?? 0)).toBeGreaterThan(200)
  }
})

test('a relay that the control plane wants stopped ends cleanly', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  await eventually(
    () => plane.reports.length,
    (count) => count >= 2,
  )

  plane.answers(stop)

  expect(await endOf(relay.child)).toBe(0)
})

describe('a relay ends when the control plane', () => {
  for (const [what, answer] of [
    ['does not know its session', refusal(404, 'not_found')],
    ['has bound another instance', refusal(409, 'instance_mismatch')],
    ['has stopped its session', refusal(409, 'invalid_transition')],
  ] as const) {
    test(what, async () => {
      const plane = await givenControlPlane()
      plane.answers(answer)
      expect(await endOf(startRelay({ apiUrl: plane.url }).child)).toBe(0)
    })
  }
})

describe('a relay keeps running and reports again when the control plane', () => {
  for (const [what, answer] of [
    ['is not ready', refusal(503, 'temporarily_unavailable')],
    ['refuses its secret', refusal(401, 'unauthorized')],
    ['is hidden by a proxy that knows no such page', { status: 404, body: '<h1>Not Found</h1>' }],
    ['answers what can not be understood', { status: 200, body: 'welcome' }],
  ] as const) {
    test(what, async () => {
      const plane = await givenControlPlane()
      const relay = startRelay({ apiUrl: plane.url })
      await eventually(
        () => plane.reports.length,
        (count) => count >= 2,
      )
      plane.answers(answer)
      const before = plane.reports.length
      await eventually(
        () => plane.reports.length,
        (count) => count >= before + 3,
      )
      expect(relay.isRunning()).toBe(true)
    })
  }
})

test('a relay outlives a control plane that goes away, and reports to it when it is back', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, intervalSeconds: 0.2 })
  await eventually(
    () => plane.reports.length,
    (count) => count >= 1,
  )
  await plane.close()
  await eventually(relay.output, (text) => text.includes('health report failed'))

  const back = await givenControlPlane(plane.port)

  await eventually(
    () => back.reports.length,
    (count) => count >= 2,
  )
  expect(relay.isRunning()).toBe(true)
})

test('a relay that was never heard tries twice a second, so that it becomes active soon', () => {
  const silence = { accepted: false, failures: 50, intervalSeconds: 10 }
  expect(pauseMillis({ ...silence, chance: 0 })).toBe(500)
  expect(pauseMillis({ ...silence, chance: 1 })).toBe(1_000)
})

test('after a failed report the next tries come quickly at first, then at the normal pace', () => {
  const pauses = [1, 2, 3, 4, 5, 6, 5_000].map((failures) =>
    pauseMillis({ accepted: true, failures, intervalSeconds: 10, chance: 1 }),
  )
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
})

test('relays that started together do not report together', () => {
  const steady = { accepted: true, failures: 0, intervalSeconds: 10 }
  expect([0, 1].map((chance) => pauseMillis({ ...steady, chance }))).toEqual([9_000, 10_000])
})

test('a pace that makes no sense is kept within bounds', () => {
  const paced = (report_in_seconds: unknown) => judge(200, { desired: 'run', report_in_seconds }, 10)
  expect(paced(0)).toEqual({ is: 'accepted', nextSeconds: 0.1 })
  expect(paced(1e9)).toEqual({ is: 'accepted', nextSeconds: 300 })
  expect(paced('soon')).toEqual({ is: 'accepted', nextSeconds: 10 })
})
