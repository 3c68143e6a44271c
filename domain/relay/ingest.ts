/**
 * The ingest of a relay: the stream that it receives, as its health reports state it. The service keeps the last
 * summary, the bitrate of the last ten minutes and totals per session. Times are seconds since 1970 by the database's
 * clock.
 */
import type { ProcessTotals } from './ingest-totals.ts'
import type { RelayRefusal } from './refusals.ts'
import { type CallerRefusal, judgeStream, type StreamJudgement } from './signal.ts'
import type { StreamEventKind } from './stream-events.ts'

/** The program that forwards the video. A relay with `none` runs but cannot forward any. */
export const ingestEngines = ['srt-live-transmit', 'sls', 'none'] as const
export type IngestEngine = (typeof ingestEngines)[number]

interface StatedRefusal {
  readonly reason: RelayRefusal
  readonly age_ms: number
}

/** The members of a report's `stats` that are valid. A relay may leave out each of them. */
export interface IngestStats {
  readonly publishing?: boolean | undefined
  readonly bitrate_kbps?: number | undefined
  readonly rtt_ms?: number | undefined
  readonly loss_pct?: number | undefined
  readonly repeat_pct?: number | undefined
  readonly links?: number | undefined
  readonly players?: number | undefined
  readonly stalled_players?: number | undefined
  readonly usual_links?: number | undefined
  readonly usual_bitrate_kbps?: number | undefined
  readonly last_refused?:
    | { readonly publish?: StatedRefusal | undefined; readonly play?: StatedRefusal | undefined }
    | undefined
  readonly bytes_total?: number | undefined
  readonly publishing_ms_total?: number | undefined
  readonly peak_bitrate_kbps?: number | undefined
  readonly started_at_ms?: number | undefined
  readonly engine?: IngestEngine | undefined
}

/** A summary within sane ranges, and what is right or wrong with its stream. */
export interface IngestSummary extends StreamJudgement {
  readonly isPublishing: boolean
  /** 0 while nothing is published. */
  readonly bitrateKbps: number
  readonly links: number
  readonly players: number
  /** Those of them that read nothing. */
  readonly stalledPlayers: number
  /** The most links of the publisher's last minutes; null where the relay does not state it. */
  readonly usualLinks: number | null
  readonly rttMs: number | null
  readonly lossPct: number | null
  /** Of the packets that came, those that had been sent before. */
  readonly repeatPct: number | null
  readonly engine: IngestEngine | null
}

export interface IngestReport extends ProcessTotals {
  /** Null when the report does not state whether a stream comes in. */
  readonly summary: IngestSummary | null
  /** The highest bitrate that the report states: that of its summary, or the peak of the process so far. */
  readonly peakBitrateKbps: number
}

/** 20 times the soft cap of a relay. */
const bitrateKbpsMax = 1_000_000
const linksMax = 64
const playersMax = 1000
const rttMsMax = 60_000
/** A day at 90 Gbit/s. A larger counter is not credible, and counting its maximum instead would falsify the total. */
const bytesTotalMax = 1e15
/** A hundred days. A larger time is not credible either. */
const publishingMsMax = 8.64e9
/** The last time that JavaScript can represent. */
const startedAtMsMax = 8.64e15

/**
 * @param stats whose numbers are not negative. Larger ones than the maximum count as the maximum.
 * @param lastEvent the last event of the stream that the report states.
 */
export function readIngest(stats: IngestStats | undefined, lastEvent?: StreamEventKind): IngestReport {
  const { publishing, bytes_total: bytes, publishing_ms_total: millis, started_at_ms: startedAt } = stats ?? {}
  const summary = stats === undefined || publishing === undefined ? null : summarize(stats, publishing, lastEvent)
  const bytesTotal = credible(bytes, bytesTotalMax)
  const isKnown = bytesTotal !== null
  return {
    summary,
    bytesTotal,
    publishingMs: isKnown ? credible(millis, publishingMsMax) : null,
    startedAtMs: isKnown ? credible(startedAt, startedAtMsMax) : null,
    peakBitrateKbps: Math.max(summary?.bitrateKbps ?? 0, wholeUpTo(bitrateKbpsMax, stats?.peak_bitrate_kbps)),
  }
}

const credible = (value: number | undefined, max: number): number | null =>
  value === undefined || value > max ? null : Math.floor(value)

/** Written out, since this runs for each report: spread objects take microseconds. */
function summarize(stats: IngestStats, isPublishing: boolean, lastEvent: StreamEventKind | undefined): IngestSummary {
  const bitrateKbps = isPublishing ? wholeUpTo(bitrateKbpsMax, stats.bitrate_kbps) : 0
  const links = wholeUpTo(linksMax, stats.links)
  const players = wholeUpTo(playersMax, stats.players)
  const stalledPlayers = wholeUpTo(playersMax, stats.stalled_players)
  const usualLinks = stats.usual_links === undefined ? null : wholeUpTo(linksMax, stats.usual_links)
  const lossPct = stats.loss_pct === undefined ? null : Math.min(stats.loss_pct, 100)
  const { phone, player } = judgeStream({
    isPublishing,
    bitrateKbps,
    usualBitrateKbps: stats.usual_bitrate_kbps,
    lossPct,
    links,
    usualLinks: usualLinks ?? undefined,
    players,
    stalledPlayers,
    publisherRefused: toRefusal(stats.last_refused?.publish),
    playerRefused: toRefusal(stats.last_refused?.play),
    hasPublished: (stats.bytes_total ?? 0) > 0,
    lastEvent,
  })
  return {
    isPublishing,
    bitrateKbps,
    links,
    players,
    stalledPlayers,
    usualLinks,
    rttMs: stats.rtt_ms === undefined ? null : Math.min(stats.rtt_ms, rttMsMax),
    lossPct,
    repeatPct: stats.repeat_pct === undefined ? null : Math.min(stats.repeat_pct, 100),
    engine: stats.engine ?? null,
    phone,
    player,
  }
}

const toRefusal = (stated: StatedRefusal | undefined): CallerRefusal | undefined =>
  stated && { reason: stated.reason, ageMillis: stated.age_ms }

const wholeUpTo = (max: number, value = 0): number => Math.min(Math.round(value), max)

/**
 * A summary counts for three report intervals: as the present state, and as the time for which a stream was received.
 */
export const summaryAgeSecondsMax = (healthIntervalSeconds: number): number => 3 * healthIntervalSeconds

export const recentSlots = 60
export const slotSeconds = 10

/** The bitrates of the last ten minutes, as the row of a session has them. */
export interface RecentBitrates {
  /** The highest bitrate of each slot up to `recentSlot`, at most 60 of them; null for a slot without a report. */
  readonly recentBitrateKbps: readonly (number | null)[]
  readonly recentSlot: number | null
}

export interface BitratePoint {
  /** The beginning of the slot, in seconds since 1970. */
  readonly at: number
  readonly kbps: number
}

/** The bitrates of the last ten minutes before `now`, oldest first. */
export function listRecentBitrates(
  { recentBitrateKbps: recent, recentSlot }: RecentBitrates,
  now: number,
): BitratePoint[] {
  if (recentSlot === null) return []
  const firstSlot = recentSlot - recent.length + 1
  const oldestSlot = Math.floor(now / slotSeconds) - recentSlots + 1
  return recent.flatMap((kbps, index) =>
    kbps === null || firstSlot + index < oldestSlot ? [] : [{ at: (firstSlot + index) * slotSeconds, kbps }],
  )
}

/** The ingest as clients see it. */
export interface ShownIngest<Time> {
  readonly isPublishing: boolean
  readonly bitrateKbps: number
  readonly links: number
  readonly since: Time
}

/**
 * The present ingest. A relay that has not reported for several intervals may be gone, so nothing counts as published
 * since its last summary.
 */
export const shownIngest = <Time>(
  last: ShownIngest<Time> & { readonly at: Time; readonly ageSeconds: number },
  healthIntervalSeconds: number,
): ShownIngest<Time> => {
  const { isPublishing, bitrateKbps, links, since, at, ageSeconds } = last
  if (ageSeconds <= summaryAgeSecondsMax(healthIntervalSeconds)) return { isPublishing, bitrateKbps, links, since }
  return { isPublishing: false, bitrateKbps: 0, links: 0, since: isPublishing ? at : since }
}
