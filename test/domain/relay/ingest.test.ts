/** The rules that read the ingest of a health report. */
import { describe, expect, test } from 'vitest'
import {
  type IngestStats,
  listRecentBitrates,
  readIngest,
  shownIngest,
  summaryAgeSecondsMax,
} from '../../../domain/relay/ingest.ts'
import { type IngestRecord, ingestAfter, noIngest, noProcess } from '../../db/relay/ingest-record.ts'

const ageSecondsMax = 15
/** 10-second slots begin at multiples of 10. */
const start = 1_000_000

/** The record after reports at these times, in seconds after the start. */
const recordAfter = (
  reports: readonly (readonly [number, IngestStats])[],
  record: IngestRecord = noIngest,
): IngestRecord =>
  reports.reduce(
    (previous, [seconds, stats]) =>
      ingestAfter(previous, readIngest(stats), { now: start + seconds, isSameInstance: true, ageSecondsMax }),
    record,
  )
const publishing = (bitrate_kbps = 0): IngestStats => ({ publishing: true, bitrate_kbps })
const silent: IngestStats = { publishing: false }

describe('a summary', () => {
  test('has whole numbers within sane ranges', () => {
    expect(
      readIngest({
        publishing: true,
        bitrate_kbps: 1e9,
        rtt_ms: 1e9,
        loss_pct: 250,
        repeat_pct: 250,
        links: 2.6,
        players: 1e9,
      }).summary,
    ).toEqual({
      isPublishing: true,
      bitrateKbps: 1_000_000,
      links: 3,
      players: 1000,
      stalledPlayers: 0,
      usualLinks: null,
      phone: 'loss_high',
      player: 'playing',
      rttMs: 60_000,
      lossPct: 100,
      repeatPct: 100,
      engine: null,
    })
  })

  test('has no round trip time and loss when the report has none', () => {
    expect(readIngest({ publishing: true, engine: 'sls' }).summary).toEqual({
      isPublishing: true,
      bitrateKbps: 0,
      links: 0,
      players: 0,
      stalledPlayers: 0,
      usualLinks: null,
      phone: 'no_video',
      player: 'no_player',
      rttMs: null,
      lossPct: null,
      repeatPct: null,
      engine: 'sls',
    })
  })

  test('has no bitrate while nothing is published', () => {
    expect(readIngest({ publishing: false, bitrate_kbps: 5000 }).summary?.bitrateKbps).toBe(0)
  })

  test('is missing when the report does not state whether a stream comes in', () => {
    expect(readIngest({ bitrate_kbps: 5000, bytes_total: 7 })).toEqual({
      summary: null,
      ...noProcess,
      bytesTotal: 7,
      peakBitrateKbps: 0,
    })
    expect(readIngest(undefined)).toEqual({ summary: null, ...noProcess, peakBitrateKbps: 0 })
  })
})

describe('the totals of a session', () => {
  test('add up the growth of the byte counter, and a smaller counter is that of an older report', () => {
    const counters = [1000, 1500, 1500, 1400, 1600]
    for (const process of [{}, { started_at_ms: 7 }]) {
      const reports = counters.map((bytes_total, index) => [index * 5, { bytes_total, ...process }] as const)
      expect(recordAfter(reports).bytesReceived).toBe(1600)
    }
  })

  test('count the whole counter of a process that started later, and none of an earlier one', () => {
    const counters = [
      [1, 1000],
      [2, 300],
      [1, 1100],
      [2, 400],
    ] as const
    const reports = counters.map(([started_at_ms, bytes_total], at) => [at, { started_at_ms, bytes_total }] as const)
    expect(recordAfter(reports).bytesReceived).toBe(1400)
  })

  test('count the whole counter of another instance', () => {
    const record = recordAfter([[0, { bytes_total: 1000 }]])
    const moved = ingestAfter(record, readIngest({ bytes_total: 1500 }), {
      now: start,
      isSameInstance: false,
      ageSecondsMax,
    })
    expect(moved.bytesReceived).toBe(2500)
  })

  test('ignore a counter that is not credible', () => {
    const reports = [1000, 1e300, 1200].map((bytes_total, index) => [index, { bytes_total }] as const)
    expect(recordAfter(reports).bytesReceived).toBe(1200)
    expect([1e15, 1e15 + 1].map((bytes_total) => readIngest({ bytes_total }).bytesTotal)).toEqual([1e15, null])
  })

  test('stay as they are when a report has no counter', () => {
    const record = recordAfter([
      [0, { bytes_total: 1000 }],
      [5, publishing()],
      [10, { bytes_total: 1500 }],
    ])
    expect(record.bytesReceived).toBe(1500)
  })

  test('have the highest bitrate and peak of all reports', () => {
    const bitrates = [10, 30, 20]
    expect(recordAfter(bitrates.map((kbps, index) => [index * 40, publishing(kbps)] as const)).peakBitrateKbps).toBe(30)
    expect(recordAfter([[0, { ...publishing(10), peak_bitrate_kbps: 40 }]]).peakBitrateKbps).toBe(40)
    expect(recordAfter([[0, { ...silent, bitrate_kbps: 50, peak_bitrate_kbps: 2e9 }]]).peakBitrateKbps).toBe(1_000_000)
  })

  test('have the time that each process states, and no time of older reports', () => {
    const counters = [
      [1, 0] as const,
      [1, 4500] as const,
      [1, 4000] as const,
      [2, 700] as const,
      [1, 5000] as const,
      [2, 1_700] as const,
    ]
    const reports = counters.map(
      ([started_at_ms, publishing_ms_total], at) =>
        [at * 10, { ...publishing(), bytes_total: 1, started_at_ms, publishing_ms_total }] as const,
    )
    expect(recordAfter(reports).secondsPublishing).toBe(6.2)
    const moved = ingestAfter(recordAfter(reports), readIngest({ bytes_total: 1, publishing_ms_total: 800 }), {
      now: start,
      isSameInstance: false,
      ageSecondsMax,
    })
    expect(moved.secondsPublishing).toBe(7)
  })

  test('have the whole time of a process whose earlier reports an earlier version of the service has judged', () => {
    const judged = recordAfter([
      [0, { ...publishing(), bytes_total: 1, started_at_ms: 1 }],
      [8, { ...publishing(), bytes_total: 2, started_at_ms: 1 }],
    ])
    expect(judged.secondsPublishing).toBe(8)
    const measured = (publishing_ms_total: number) =>
      recordAfter([[16, { ...publishing(), bytes_total: 3, started_at_ms: 1, publishing_ms_total }]], judged)
    expect([measured(17_500), measured(7_000)].map(({ secondsPublishing }) => secondsPublishing)).toEqual([17.5, 8])
  })

  test('have no time that is not credible', () => {
    expect(recordAfter([[0, { bytes_total: 1, publishing_ms_total: 1e300 }]]).secondsPublishing).toBe(0)
    const processes = Array.from({ length: 200 }, (_, index) => index)
    const reports = processes.map(
      (started_at_ms) => [0, { bytes_total: 1, publishing_ms_total: 8e9, started_at_ms }] as const,
    )
    expect(recordAfter(reports).secondsPublishing).toBe(1e9)
  })

  test('count the time between two reports of a stream without a time, each at most three report intervals', () => {
    const seconds = (reports: readonly (readonly [number, IngestStats])[]) => recordAfter(reports).secondsPublishing
    expect(seconds([[0, publishing()]])).toBe(0)
    expect(
      seconds([
        [0, publishing()],
        [5, publishing()],
        [105, publishing()],
      ]),
    ).toBe(20)
    expect(
      seconds([
        [0, publishing()],
        [5, silent],
        [10, publishing()],
        [12, publishing()],
      ]),
    ).toBe(2)
  })
})

test('a stream comes in since the first report of it, and not since the first report after it', () => {
  const since = (reports: readonly (readonly [number, IngestStats])[]) =>
    (recordAfter(reports).publishingSince ?? 0) - start
  expect(since([[0, silent]])).toBe(0)
  const started = [
    [0, silent],
    [5, publishing()],
    [10, {}],
    [15, publishing()],
  ] as const
  expect(since(started)).toBe(5)
  expect(since([...started, [20, silent], [25, silent]])).toBe(20)
})

test('before the first report nothing is stored', () => {
  expect(noIngest).toEqual({
    summary: null,
    summaryAt: null,
    publishingSince: null,
    ...noProcess,
    bytesReceived: 0,
    peakBitrateKbps: 0,
    secondsPublishing: 0,
    recentBitrateKbps: [],
    recentSlot: null,
  })
})

describe('the shown ingest', () => {
  const last = { isPublishing: true, bitrateKbps: 6000, links: 2, since: 100, at: 200 }

  test('is the last summary for three report intervals', () => {
    expect(summaryAgeSecondsMax(10)).toBe(30)
    expect(shownIngest({ ...last, ageSeconds: 30 }, 10)).toEqual({
      isPublishing: true,
      bitrateKbps: 6000,
      links: 2,
      since: 100,
    })
  })

  test('is nothing after that: since the last summary, or since a stream ended before', () => {
    const nothing = { isPublishing: false, bitrateKbps: 0, links: 0 }
    expect(shownIngest({ ...last, ageSeconds: 31 }, 10)).toEqual({ ...nothing, since: 200 })
    expect(shownIngest({ ...last, isPublishing: false, ageSeconds: 31 }, 10)).toEqual({ ...nothing, since: 100 })
  })
})

describe('the recent bitrates', () => {
  const recent = (reports: readonly (readonly [number, number])[], nowSeconds: number) =>
    listRecentBitrates(
      recordAfter(reports.map(([seconds, kbps]) => [seconds, publishing(kbps)] as const)),
      start + nowSeconds,
    ).map(({ at, kbps }) => [at - start, kbps])

  test('have the highest bitrate of each slot, and none for a slot without a report', () => {
    const reports = [[0, 10] as const, [4, 30] as const, [9, 20] as const, [10, 5] as const, [31, 40] as const]
    expect(recent(reports, 35)).toEqual([
      [0, 30],
      [10, 5],
      [30, 40],
    ])
  })

  test('reach back ten minutes', () => {
    const reports = Array.from({ length: 100 }, (_, index) => [index * 10, index] as const)
    const shown = recent(reports, 995)
    expect(shown).toHaveLength(60)
    expect([shown[0], shown.at(-1)]).toEqual([
      [400, 40],
      [990, 99],
    ])
    expect(recent(reports, 1300)).toHaveLength(29)
    expect(recent(reports, 5000)).toEqual([])
    expect(recent([...reports, [5000, 7]], 5000)).toEqual([[5000, 7]])
  })

  test('are stored for the last sixty slots only', () => {
    const stored = (seconds: readonly number[]) =>
      recordAfter(seconds.map((second) => [second, publishing(second)] as const)).recentBitrateKbps
    const everySlot = Array.from({ length: 100 }, (_, index) => index * 10)
    expect(stored(everySlot)).toEqual(everySlot.slice(-60))
    expect(stored([0, 10, 600])).toEqual([10, ...Array<null>(58).fill(null), 600])
    expect(stored([0, 600])).toEqual([600])
    expect(stored([0, 10, 700])).toEqual([700])
  })

  test('are none before the first summary', () => {
    expect(listRecentBitrates(noIngest, start)).toEqual([])
  })
})
