import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isConvincing, judge, noDenials, pauseMillis, reportUntilEnded, withOutcome } from '../../relay-node/health.ts'
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

test('a relay ends at once when the control plane has stopped its session', async () => {
  const plane = await givenControlPlane()
  plane.answers(refusal(409, 'invalid_transition'))
  expect(await endOf(startRelay({ apiUrl: plane.url }).child)).toBe(0)
})

/** What an API on a wrong database answers to every relay. */
const denials = [
  ['does not know its session', refusal(404, 'not_found')],
  ['has bound another instance', refusal(409, 'instance_mismatch')],
] as const

describe.each(denials)('a relay whose control plane %s', (_, denial) => {
  /** Reports in this process, so that the minute is short. */
  const startReports = (apiUrl: string, denialMillisMin: number) => {
    const ending = new AbortController()
    onTestFinished(() => ending.abort())
    return reportUntilEnded({
      ...{ apiUrl, authSecret: secret, sessionId: randomUUID(), instanceId: 'relay-1', intervalSeconds: 0.1 },
      ...{ denialMillisMin, showStats: () => ({ ts: 0, groups: [] }), log: () => {}, signal: ending.signal },
    })
  }

  test('goes on for many reports', async () => {
    const plane = await givenControlPlane()
    const relay = startRelay({ apiUrl: plane.url })
    await eventually(
      () => plane.reports.length,
      (count) => count >= 2,
    )
    plane.answers(denial)
    const before = plane.reports.length
    await eventually(
      () => plane.reports.length,
      (count) => count >= before + 8,
    )
    expect(relay.isRunning()).toBe(true)
  })

  test('ends when it answers so for the whole time', async () => {
    const plane = await givenControlPlane()
    plane.answers(denial)
    const startedAt = performance.now()
    expect(await startReports(plane.url, 2000)).toMatch(`${denial.status} `)
    expect(performance.now() - startedAt).toBeGreaterThan(2000)
    expect(plane.reports.length).toBeGreaterThanOrEqual(5)
  })

  test('goes on for the whole time again after a report that was accepted', async () => {
    const plane = await givenControlPlane()
    plane.answers(denial)
    const ended = startReports(plane.url, 2500)
    await eventually(
      () => plane.reports.length,
      (count) => count >= 3,
    )
    plane.answers(run(0.1))
    const before = plane.reports.length
    await eventually(
      () => plane.reports.length,
      (count) => count >= before + 2,
    )
    plane.answers(denial)
    const deniedAt = performance.now()
    await ended
    expect(performance.now() - deniedAt).toBeGreaterThan(2400)
  })
})

test('denials count only when there were several of them over the whole time, whatever failed in between', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ kind: fc.constantFrom('accepted', 'denied', 'failed'), after: fc.nat(30_000) }), {
        maxLength: 60,
      }),
      (reports) => {
        let now = 0
        let denials = noDenials
        let unbroken: number[] = []
        for (const { kind, after } of reports) {
          now += after
          denials = withOutcome(denials, kind as 'accepted' | 'denied' | 'failed', now)
          if (kind === 'accepted') unbroken = []
          if (kind === 'denied') unbroken.push(now)
          const [first = now] = unbroken
          expect(isConvincing(denials, 60_000)).toBe(unbroken.length >= 5 && (unbroken.at(-1) ?? now) - first >= 60_000)
        }
      },
    ),
  )
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
