/** What a relay reports about its stream, and when. */
import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { now } from '../../relay-node/clock.ts'
import { extraPauseMillis } from '../../relay-node/extra-reports.ts'
import { reportUntilEnded } from '../../relay-node/health.ts'
import { StreamEvents } from '../../relay-node/stream-events.ts'
import { type Report, refusal, run } from './control-plane.ts'
import { eventually, givenControlPlane, noAdmissions, secret } from './running.ts'

const stepMillis = 250

/** A stream in a time of its own. */
function givenStream(weakKbps = 800, startAt = 0) {
  const events = new StreamEvents(weakKbps)
  const totals = { bytes: 0, lastAt: Number.NEGATIVE_INFINITY }
  let at = startAt
  return {
    events,
    at: () => at,
    flow(kbps: number, millis: number) {
      for (const until = at + millis; at < until; ) {
        at += stepMillis
        totals.bytes += (kbps * stepMillis) / 8
        if (kbps > 0) totals.lastAt = at
        events.sample(totals, at)
      }
    },
  }
}

const kindsOf = (events: readonly { readonly kind: string }[]) => events.map(({ kind }) => kind)

describe('the events of a stream', () => {
  test('are kept with their ages until they are accepted, and the last one for longer', () => {
    const { events, flow, at } = givenStream()
    flow(4_000, 10_000)
    flow(0, 10_000)
    expect(events.list(at())).toEqual([
      { seq: 1, kind: 'stream_started', age_ms: 18_750, bitrate_kbps: 4_000 },
      { seq: 2, kind: 'stream_lost', age_ms: 8_000, bitrate_kbps: 0 },
    ])
    events.accept(1)
    expect(kindsOf(events.list(at()))).toEqual(['stream_lost'])
    events.accept(2)
    expect(kindsOf(events.list(at()))).toEqual(['stream_lost'])
    flow(4_000, 10_000)
    expect(events.list(at()).map(({ seq }) => seq)).toEqual([3])
  })

  test('are judged by the limit that the relay has', () => {
    const { events, flow, at } = givenStream(5_000)
    flow(4_000, 10_000)
    expect(kindsOf(events.list(at()))).toEqual(['stream_started', 'stream_weak'])
    expect(events.list(at())[1]?.bitrate_kbps).toBe(4_000)
  })

  test('are at most a hundred, of which the oldest are given up', () => {
    const { events, flow, at } = givenStream()
    for (let round = 0; round < 80; round += 1) {
      flow(4_000, 4_000)
      flow(0, 4_000)
    }
    expect(events.list(at()).map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, index) => index + 61))
  })

  test('end with the relay', () => {
    const { events, flow, at } = givenStream()
    events.end(at())
    expect(events.list(at())).toEqual([])
    flow(4_000, 5_000)
    events.end(at())
    events.end(at())
    expect(kindsOf(events.list(at()))).toEqual(['stream_started', 'stream_ended'])
  })
})

describe('an event', () => {
  const summary = {
    publishing: false,
    bitrate_kbps: 0,
    links: 0,
    players: 0,
    bytes_total: 0,
    engine: 'none',
    refused: {},
    stalled_players: 0,
    last_refused: {},
    publishing_ms_total: 0,
    peak_bitrate_kbps: 0,
  } as const

  /** Reports in this process, while the control plane holds the usual reports. */
  async function givenReports() {
    const plane = await givenControlPlane()
    plane.holdsBound()
    const stream = givenStream(800, now() - 60_000)
    const ending = new AbortController()
    const ended = reportUntilEnded({
      apiUrl: plane.url,
      authSecret: secret,
      sessionId: randomUUID(),
      instanceId: 'relay-1',
      intervalSeconds: 10,
      summarizeIngest: () => summary,
      admissions: noAdmissions,
      streamEvents: stream.events,
      onAssigned: async () => {},
      closeStreams: async () => {},
      log: () => {},
      signal: ending.signal,
    })
    onTestFinished(async () => {
      ending.abort()
      await ended
    })
    await eventually(
      () => plane.reports.length,
      (count) => count === 1,
    )
    const extra = () => plane.reports.filter(({ body }) => body.is_extra)
    const untilExtra = (count: number) => eventually(extra, ({ length }) => length >= count)
    return { plane, stream, extra, untilExtra }
  }

  test('is reported at once while a usual report is held, whose connection stays open', async () => {
    const { plane, stream, untilExtra } = await givenReports()
    const [usual] = plane.reports
    expect(usual?.body).toMatchObject({ wait_seconds: 7, events: [] })
    const at = performance.now()
    stream.flow(4_000, 2_000)
    const [reported] = await untilExtra(1)
    expect((reported?.at ?? 0) - at).toBeLessThan(500)
    expect(reported?.body).not.toHaveProperty('wait_seconds')
    expect(reported?.body.events).toMatchObject([{ seq: 1, kind: 'stream_started', bitrate_kbps: 4_000 }])
    expect(plane.reports).toHaveLength(2)
    expect(usual?.isGivenUp()).toBe(false)
  })

  test('that follows another one within a second is reported a second after it', async () => {
    const { stream, extra, untilExtra } = await givenReports()
    stream.flow(4_000, 2_000)
    await untilExtra(1)
    stream.flow(0, 4_000)
    await untilExtra(2)
    const [first, second] = extra()
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(950)
    expect(kindsOf(second?.body.events ?? [])).toEqual(['stream_lost'])
  })

  test('is repeated with growing pauses until a report with it was accepted, and counts as the last one then', async () => {
    const { plane, stream, extra, untilExtra } = await givenReports()
    // The first answer is that to the usual report.
    plane.answers(refusal(503, 'temporarily_unavailable'))
    stream.flow(4_000, 2_000)
    await untilExtra(2)
    const seqsOf = ({ body }: Report) => body.events?.map(({ seq }) => seq).join()
    expect(extra().map(seqsOf)).toEqual(['1', '1'])
    plane.answers(run(10))
    stream.flow(0, 4_000)
    await eventually(
      () => plane.reports.map(seqsOf),
      (seqs) => seqs.includes('2'),
    )
    expect([0, 1, 2, 9].map(extraPauseMillis)).toEqual([1_000, 2_000, 4_000, 4_000])
  })
})
