/** The reports of a relay, and what their answers make it do. */
import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pauseMillis, reportUntilEnded } from '../../relay-node/health.ts'
import { interpretReply } from '../../relay-node/health-report.ts'
import { type ControlPlane, refusal, run, stop } from './control-plane.ts'
import { endOf, eventually, givenControlPlane, noAdmissions, noIngest, secret, startRelay } from './running.ts'

test('a relay reports at once with its secret, session and instance, and then at the interval of the answer', async () => {
  const plane = await givenControlPlane()
  plane.answers(run(0.3))
  const startedAt = Date.now()
  const relay = startRelay({ apiUrl: plane.url, intervalSeconds: 60 })

  await eventually(
    () => plane.reports.length,
    (count) => count >= 4,
  )

  const [first, second, third, fourth] = plane.reports
  expect(first).toMatchObject({
    secret,
    body: { session_id: relay.sessionId, instance_id: relay.instanceId, stats: noIngest },
  })
  expect(Date.parse(first?.body.observed_at ?? '')).toBeGreaterThanOrEqual(startedAt)
  for (const [earlier, later] of [
    [second, third],
    [third, fourth],
  ]) {
    expect((later?.at ?? 0) - (earlier?.at ?? 0)).toBeGreaterThan(200)
  }
})

test('a relay repeats the epoch of the last answer that had one', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const untilEpoch = (epoch: string | undefined) =>
    eventually(
      () => plane.reports.at(-1)?.body.epoch,
      (last) => last === epoch,
    )
  await eventually(
    () => plane.reports.length,
    (count) => count >= 2,
  )
  expect(plane.reports.at(-1)?.body).not.toHaveProperty('epoch')

  plane.answers({ ...run(), body: { ...(run().body as object), epoch: 'the first' } })
  await untilEpoch('the first')
  plane.answers(refusal(404, 'not_found'))
  const before = plane.reports.length
  await eventually(
    () => plane.reports.length,
    (count) => count >= before + 3,
  )
  expect(plane.reports.at(-1)?.body.epoch).toBe('the first')
  plane.answers({ ...run(), body: { ...(run().body as object), epoch: 'the second' } })
  await untilEpoch('the second')
  expect(relay.isRunning()).toBe(true)
})

test('a relay ends with code 0 when the control plane stops it', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  await eventually(
    () => plane.reports.length,
    (count) => count >= 2,
  )

  plane.answers(stop)

  expect(await endOf(relay.child)).toBe(0)
})

test.each([
  ['the control plane has stopped its session', 'invalid_transition'],
  ['another relay has taken over', 'relay_replaced'],
])('a relay ends at once when %s', async (_, code) => {
  const plane = await givenControlPlane()
  plane.answers(refusal(409, code))
  expect(await endOf(startRelay({ apiUrl: plane.url }).child)).toBe(0)
})

describe('a relay that is ended by a signal', () => {
  /** Reports in this process, so that each answer is known to have arrived. */
  async function givenReports() {
    const plane = await givenControlPlane()
    const ending = new AbortController()
    onTestFinished(() => ending.abort())
    const logged: string[] = []
    let bytes_total = 1_000
    const ended = reportUntilEnded({
      apiUrl: plane.url,
      authSecret: secret,
      sessionId: randomUUID(),
      instanceId: 'relay-1',
      intervalSeconds: 0.1,
      async onAssigned() {},
      signal: ending.signal,
      admissions: noAdmissions,
      summarizeIngest: () => ({ ...noIngest, bytes_total }),
      log: (_, message) => void logged.push(message),
      async closeStreams() {
        bytes_total = 5_000
      },
    })
    const untilLogged = (message: string) => eventually(() => logged.includes(message), Boolean)
    return { plane, ended, untilLogged, end: () => ending.abort() }
  }

  test('closes its streams and reports their totals', async () => {
    const { plane, ended, untilLogged, end } = await givenReports()
    plane.answers(run(60))
    await untilLogged('health report accepted')
    end()
    expect(await ended).toBe('stopped by a signal')
    expect(plane.reports.map(({ body }) => body.stats.bytes_total)).toEqual([1_000, 5_000])
  })

  test.each([
    ['failed', refusal(503, 'temporarily_unavailable')],
    ['denied', refusal(409, 'instance_mismatch')],
  ])('reports no more after a report that was %s, since it may count as lost', async (outcome, answer) => {
    const { plane, ended, untilLogged, end } = await givenReports()
    await untilLogged('health report accepted')
    plane.answers(answer)
    await untilLogged(`health report ${outcome}`)
    end()
    await ended
    expect(plane.reports.map(({ body }) => body.stats.bytes_total)).not.toContain(5_000)
  })
})

/** Answers of an API on a wrong database to every relay. */
const denials = [
  ['does not know its session', refusal(404, 'not_found')],
  ['has another instance for the session', refusal(409, 'instance_mismatch')],
] as const

describe.each(denials)('a relay whose control plane %s', (_, denial) => {
  /** Reports in this process, where the minute can be shortened. */
  const startReports = (apiUrl: string, denialMillisMin: number) => {
    const ending = new AbortController()
    onTestFinished(() => ending.abort())
    return reportUntilEnded({
      apiUrl,
      authSecret: secret,
      sessionId: randomUUID(),
      instanceId: 'relay-1',
      intervalSeconds: 0.1,
      denialMillisMin,
      admissions: noAdmissions,
      summarizeIngest: () => noIngest,
      async onAssigned() {},
      log() {},
      signal: ending.signal,
      closeStreams: async () => {},
    })
  }

  /** Resolves after so many more reports. */
  const untilReports = ({ reports }: ControlPlane, more: number) => {
    const before = reports.length
    return eventually(
      () => reports.length,
      (count) => count >= before + more,
    )
  }

  test('ends when the answer is repeated for the whole time, which begins again after an accepted report', async () => {
    const plane = await givenControlPlane()
    const ended = startReports(plane.url, 1000)
    await untilReports(plane, 1)
    plane.answers(denial)
    // Fewer than would end it, however long they take.
    await untilReports(plane, 3)
    plane.answers(run(0.1))
    await untilReports(plane, 2)
    plane.answers(denial)
    const [deniedAt, before] = [performance.now(), plane.reports.length]
    expect(await ended).toMatch(`${denial.status} `)
    expect(performance.now() - deniedAt).toBeGreaterThanOrEqual(1000)
    expect(plane.reports.length - before).toBeGreaterThanOrEqual(5)
  })
})

test('a relay keeps running and reports again whatever the control plane answers, unless that ends its session', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  for (const [reports, answer] of [
    [2, run()],
    ...denials.flatMap(([, denial]) => [[8, denial] as const, [2, run()] as const]),
    // It is not ready.
    [3, refusal(503, 'temporarily_unavailable')],
    // It rejects the relay's secret.
    [3, refusal(401, 'unauthorized')],
    // It is replaced by a proxy.
    [3, { status: 404, body: '<h1>Not Found</h1>' }],
    [3, { status: 200, body: 'welcome' }],
    [2, run()],
  ] as const) {
    plane.answers(answer)
    const before = plane.reports.length
    await eventually(
      () => plane.reports.length,
      (count) => count >= before + reports,
    )
    expect([answer, relay.isRunning()]).toEqual([answer, true])
  }
})

test('a relay keeps running during an outage of the control plane, and reports again after it', async () => {
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

test('a relay without an accepted report repeats it once or twice a second, so that it becomes active soon', () => {
  const neverAccepted = { isAccepted: false, failures: 50, intervalSeconds: 10 }
  expect(pauseMillis({ ...neverAccepted, random: 0 })).toBe(500)
  expect(pauseMillis({ ...neverAccepted, random: 1 })).toBe(1_000)
})

test('failed reports are repeated with growing pauses up to four seconds or the normal interval', () => {
  const pausesAt = (intervalSeconds: number) =>
    [1, 2, 3, 4, 5_000].map((failures) => pauseMillis({ isAccepted: true, failures, intervalSeconds, random: 1 }))
  expect(pausesAt(10)).toEqual([1_000, 2_000, 4_000, 4_000, 4_000])
  expect(pausesAt(3)).toEqual([1_000, 2_000, 3_000, 3_000, 3_000])
})

test('a relay that was asked for its next report at once repeats failed ones with growing pauses', async () => {
  const plane = await givenControlPlane()
  plane.answers(run(0))
  startRelay({ apiUrl: plane.url, intervalSeconds: 10 })
  await eventually(
    () => plane.reports.length,
    (count) => count >= 2,
  )
  plane.answers({ status: 503, body: {} })
  const before = plane.reports.length
  const reports = await eventually(
    () => plane.reports.slice(before),
    ({ length }) => length >= 4,
  )
  const pauses = reports.slice(1).map(({ at }, index) => at - (reports[index]?.at ?? 0))
  expect(pauses[1]).toBeGreaterThan(850)
  expect(pauses[2]).toBeGreaterThan(1_750)
})

test('reports of relays that started together are spread', () => {
  const steady = { isAccepted: true, failures: 0, intervalSeconds: 10 }
  expect([0, 1].map((random) => pauseMillis({ ...steady, random }))).toEqual([9_000, 10_000])
})

test('an interval out of range is limited', () => {
  const interpret = (report_in_seconds: unknown) => interpretReply(200, { desired: 'run', report_in_seconds }, 10)
  expect(interpret(0)).toEqual({ type: 'accepted', nextSeconds: 0 })
  expect(interpret(1e9)).toEqual({ type: 'accepted', nextSeconds: 300 })
  expect(interpret('soon')).toEqual({ type: 'accepted', nextSeconds: 10 })
})
