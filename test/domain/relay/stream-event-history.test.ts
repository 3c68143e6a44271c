/** How the reports of relays become the stream events of a session. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  followReport,
  type ReportedStreamEvent,
  type StreamHistory,
  type StreamReport,
} from '../../../domain/relay/stream-event-history.ts'
import { type StreamEventKind, streamEventKinds, streamStateAfter } from '../../../domain/relay/stream-events.ts'

const now = 1_000_000

const event = (seq: number, kind: StreamEventKind, ageMillis = 0): ReportedStreamEvent => ({
  seq,
  kind,
  ageMillis,
  bitrateKbps: 4_000,
})

const reportOf = (events: readonly ReportedStreamEvent[], fields: Partial<StreamReport> = {}): StreamReport => ({
  instanceId: 'i-1',
  processStartedAtMs: 1,
  events,
  bitrateKbps: 5_000,
  ...fields,
})

/** The history after a change, as the database would have it. */
function historyAfter(history: StreamHistory | undefined, report: StreamReport, at = now): StreamHistory | undefined {
  const { added, adopted } = followReport(history, report, at)
  const last = added.at(-1)
  const source = added.findLast((each) => each.source !== null)?.source ?? adopted ?? history?.source ?? null
  if (last) return { lastKind: last.kind, lastAt: last.at, source }
  return history && { ...history, source }
}

const started = historyAfter(undefined, reportOf([event(1, 'stream_started')])) as StreamHistory
const kindsOf = (...of: Parameters<typeof followReport>) => followReport(...of).added.map(({ kind }) => kind)

describe('a report', () => {
  test('adds its events once, with their times by the clock of the service', () => {
    const report = reportOf([event(1, 'stream_started', 9_000), event(2, 'stream_lost', 4_000)])
    expect(followReport(undefined, report, now).added).toEqual([
      {
        kind: 'stream_started',
        at: now - 9_000,
        bitrateKbps: 4_000,
        source: { instanceId: 'i-1', processStartedAtMs: 1, seq: 1 },
      },
      {
        kind: 'stream_lost',
        at: now - 4_000,
        bitrateKbps: 4_000,
        source: { instanceId: 'i-1', processStartedAtMs: 1, seq: 2 },
      },
    ])
    expect(kindsOf(historyAfter(undefined, report), report, now)).toEqual([])
  })

  test('of before the last stored event changes nothing', () => {
    const lost = historyAfter(started, reportOf([event(1, 'stream_started'), event(2, 'stream_lost')]))
    expect(kindsOf(lost, reportOf([event(1, 'stream_started')]), now)).toEqual([])
    expect(kindsOf(lost, reportOf([]), now)).toEqual([])
  })

  test('of a process that was replaced changes nothing', () => {
    const report = reportOf([event(7, 'stream_lost')], { processStartedAtMs: 0 })
    expect(kindsOf(started, report, now)).toEqual([])
  })

  test('of a new process continues the stream of the one before it', () => {
    const replacement = { instanceId: 'i-2', processStartedAtMs: 0 }
    const lost = historyAfter(started, reportOf([], replacement))
    expect(lost?.lastKind).toBe('stream_lost')
    const back = historyAfter(lost, reportOf([event(1, 'stream_started')], replacement))
    expect(back).toMatchObject({ lastKind: 'stream_recovered', source: { instanceId: 'i-2', seq: 1 } })
    expect(kindsOf(back, reportOf([event(1, 'stream_started')], replacement), now)).toEqual([])
  })

  test('of a new process begins a new stream when the one before has ended', () => {
    const ended = historyAfter(started, reportOf([event(2, 'stream_ended')]))
    expect(kindsOf(ended, reportOf([event(1, 'stream_started')], { instanceId: 'i-2' }), now)).toEqual([
      'stream_started',
    ])
  })

  test('of a new process ends the stream when no data came for five minutes', () => {
    const silent = reportOf([], { instanceId: 'i-2' })
    const lost = historyAfter(started, silent)
    expect(kindsOf(lost, silent, now + 299_000)).toEqual([])
    expect(kindsOf(lost, silent, now + 300_000)).toEqual(['stream_ended'])
  })

  test('after the service took the stream for lost says what the stream is, once', () => {
    const lost: StreamHistory = { ...started, lastKind: 'stream_lost', lastAt: now }
    const report = reportOf([event(1, 'stream_started')])
    expect(followReport(lost, report, now).added).toEqual([
      { kind: 'stream_recovered', at: now, bitrateKbps: 5_000, source: null },
    ])
    expect(kindsOf(historyAfter(lost, report), report, now)).toEqual([])
    expect(kindsOf(lost, reportOf([event(1, 'stream_started'), event(2, 'stream_weak')]), now)).toEqual(['stream_weak'])
  })

  test('that confirms what the service took for lost changes nothing but the source, so that it counts as stored', () => {
    const lost: StreamHistory = { ...started, lastKind: 'stream_lost', lastAt: now }
    const report = reportOf([event(2, 'stream_lost')])
    expect(followReport(lost, report, now)).toEqual({
      added: [],
      adopted: { instanceId: 'i-1', processStartedAtMs: 1, seq: 2 },
    })
    expect(followReport(historyAfter(lost, report), report, now)).toEqual({ added: [], adopted: null })
  })

  test('of a relay without a stream adds nothing', () => {
    expect(followReport(undefined, reportOf([]), now)).toEqual({ added: [], adopted: null })
    expect(kindsOf(undefined, reportOf([event(1, 'stream_lost')]), now)).toEqual([])
  })
})

test('whatever relays report, kinds differ from the one before, times grow, and the history says what the stream is', () => {
  const anyStep = fc.record({
    instanceId: fc.constantFrom('i-1', 'i-2'),
    processStartedAtMs: fc.integer({ min: 1, max: 3 }),
    events: fc.uniqueArray(
      fc.record({
        seq: fc.integer({ min: 1, max: 12 }),
        kind: fc.constantFrom(...streamEventKinds),
        ageMillis: fc.nat(100_000),
        bitrateKbps: fc.nat(9_000),
      }),
      { maxLength: 6, selector: ({ seq }) => seq },
    ),
    bitrateKbps: fc.nat(9_000),
    isLost: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 12 }), (steps) => {
      let history: StreamHistory | undefined
      for (const [index, { isLost, ...report }] of steps.entries()) {
        const at = now + index * 1_000
        const { added } = followReport(history, report, at)
        let before = history && { kind: history.lastKind, at: history.lastAt }
        for (const each of added) {
          expect(each.kind).not.toBe(before?.kind)
          expect(each.at).toBeGreaterThanOrEqual(before?.at ?? 0)
          expect(each.at).toBeLessThanOrEqual(at)
          before = each
        }
        history = historyAfter(history, report, at)
        expect(followReport(history, report, at).added).toEqual([])
        if (isLost && streamStateAfter(history?.lastKind) === 'good' && history)
          history = { ...history, lastKind: 'stream_lost', lastAt: at }
      }
    }),
  )
})
