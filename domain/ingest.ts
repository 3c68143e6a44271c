/**
 * The ingest of a relay: the stream that it receives, as its health reports state it. The service keeps the last summary, the
 * bitrate of the last ten minutes and totals per session. Times are seconds since 1970 by the database's clock.
 */

/** The program that forwards the video. A relay with `none` runs but cannot forward any. */
export const ingestEngines = ['srt-live-transmit', 'sls', 'none'] as const
export type IngestEngine = (typeof ingestEngines)[number]

/** The members of a report's `stats` that are valid. A relay may leave out each of them. */
export interface IngestStats {
  readonly publishing?: boolean | undefined
  readonly bitrate_kbps?: number | undefined
  readonly rtt_ms?: number | undefined
  readonly loss_pct?: number | undefined
  readonly links?: number | undefined
  readonly players?: number | undefined
  readonly bytes_total?: number | undefined
  readonly started_at_ms?: number | undefined
  readonly engine?: IngestEngine | undefined
}

/** A summary within sane ranges. */
export interface IngestSummary {
  readonly isPublishing: boolean
  /** 0 while nothing is published. */
  readonly bitrateKbps: number
  readonly links: number
  readonly players: number
  readonly rttMs: number | null
  readonly lossPct: number | null
  readonly engine: IngestEngine | null
}

export interface IngestReport {
  /** Null when the report does not state whether a stream comes in. */
  readonly summary: IngestSummary | null
  /** The bytes that the relay's process has received so far; null when the report does not state them. */
  readonly bytesTotal: number | null
  /** When that process started, in milliseconds since 1970 by its clock; null when the report does not state it. */
  readonly startedAtMs: number | null
}

/** 20 times the soft cap of a relay. */
const bitrateKbpsMax = 1_000_000
const linksMax = 64
const playersMax = 1000
const rttMsMax = 60_000
/** A day at 90 Gbit/s. A larger counter is not credible, and counting its maximum instead would falsify the total. */
const bytesTotalMax = 1e15
/** The last time that JavaScript can represent. */
const startedAtMsMax = 8.64e15

/** @param stats whose numbers are not negative. Larger ones than the maximum count as the maximum. */
export function readIngest(stats: IngestStats | undefined): IngestReport {
  const { publishing, bytes_total: bytes, started_at_ms: startedAt } = stats ?? {}
  const bytesTotal = bytes === undefined || bytes > bytesTotalMax ? null : Math.floor(bytes)
  const isStartKnown = bytesTotal !== null && startedAt !== undefined && startedAt <= startedAtMsMax
  return {
    summary: stats === undefined || publishing === undefined ? null : summarize(stats, publishing),
    bytesTotal,
    startedAtMs: isStartKnown ? Math.floor(startedAt) : null,
  }
}

const summarize = (stats: IngestStats, isPublishing: boolean): IngestSummary => ({
  isPublishing,
  bitrateKbps: isPublishing ? wholeUpTo(bitrateKbpsMax, stats.bitrate_kbps) : 0,
  links: wholeUpTo(linksMax, stats.links),
  players: wholeUpTo(playersMax, stats.players),
  rttMs: stats.rtt_ms === undefined ? null : Math.min(stats.rtt_ms, rttMsMax),
  lossPct: stats.loss_pct === undefined ? null : Math.min(stats.loss_pct, 100),
  engine: stats.engine ?? null,
})

const wholeUpTo = (max: number, value = 0): number => Math.min(Math.round(value), max)

/** A summary counts for three report intervals: as the present state, and as the time for which a stream was received. */
export const summaryAgeSecondsMax = (healthIntervalSeconds: number): number => 3 * healthIntervalSeconds

export const recentSlots = 60
export const slotSeconds = 10

/** The sum of the bytes stays a number that JSON can represent exactly. */
export const bytesReceivedMax = Number.MAX_SAFE_INTEGER

/** What is stored about the ingest of a session. */
export interface IngestRecord {
  /** The last summary and when it was reported; null before the first. */
  readonly summary: IngestSummary | null
  readonly summaryAt: number | null
  /** Since when `isPublishing` has its present value. */
  readonly publishingSince: number | null
  readonly bytesTotal: number | null
  /** That of the latest process. */
  readonly startedAtMs: number | null
  readonly bytesReceived: number
  readonly peakBitrateKbps: number
  readonly secondsPublishing: number
  /** The highest bitrate of each slot up to `recentSlot`, at most 60 of them; null for a slot without a report. */
  readonly recentBitrateKbps: readonly (number | null)[]
  readonly recentSlot: number | null
}

export const noIngest: IngestRecord = {
  ...{ summary: null, summaryAt: null, publishingSince: null },
  ...{ bytesTotal: null, startedAtMs: null, bytesReceived: 0, peakBitrateKbps: 0, secondsPublishing: 0 },
  ...{ recentBitrateKbps: [], recentSlot: null },
}

/**
 * The record after a report. `db/relay-health.ts` computes the same in SQL, for many sessions in one statement; a test compares
 * both.
 * @param isSameInstance whether the report before came from the same instance.
 */
export function ingestAfter(
  record: IngestRecord,
  report: IngestReport,
  { now, isSameInstance, ageSecondsMax }: { now: number; isSameInstance: boolean; ageSecondsMax: number },
): IngestRecord {
  const { summary } = report
  const withBytes = { ...record, ...bytesAfter(record, report, isSameInstance) }
  if (summary === null) return withBytes
  const wasPublishing = record.summary?.isPublishing
  const age = record.summaryAt === null ? 0 : Math.max(0, now - record.summaryAt)
  return {
    ...withBytes,
    ...{
      summary,
      summaryAt: now,
      publishingSince: wasPublishing === summary.isPublishing ? record.publishingSince : now,
    },
    peakBitrateKbps: Math.max(record.peakBitrateKbps, summary.bitrateKbps),
    secondsPublishing:
      record.secondsPublishing + (wasPublishing && summary.isPublishing ? Math.min(age, ageSecondsMax) : 0),
    ...recentAfter(record, summary.bitrateKbps, Math.floor(now / slotSeconds)),
  }
}

/**
 * Reports may overtake each other, so a smaller counter of a process, and one of an earlier process, is that of an older report.
 * Former relays do not state when their process started: those of one instance count as one process.
 */
function bytesAfter(
  record: IngestRecord,
  { bytesTotal, startedAtMs }: IngestReport,
  isSameInstance: boolean,
): Pick<IngestRecord, 'bytesTotal' | 'startedAtMs' | 'bytesReceived'> {
  if (bytesTotal === null) return record
  const before = isSameInstance ? record : noIngest
  const isStartKnown = startedAtMs !== null && before.startedAtMs !== null
  const base = isStartKnown && startedAtMs > before.startedAtMs ? 0 : (before.bytesTotal ?? 0)
  const total = isStartKnown && startedAtMs < before.startedAtMs ? base : Math.max(base, bytesTotal)
  return {
    bytesTotal: total,
    startedAtMs: isStartKnown ? Math.max(startedAtMs, before.startedAtMs) : (startedAtMs ?? before.startedAtMs),
    bytesReceived: Math.min(record.bytesReceived + total - base, bytesReceivedMax),
  }
}

function recentAfter(
  { recentBitrateKbps: recent, recentSlot }: IngestRecord,
  kbps: number,
  slot: number,
): Pick<IngestRecord, 'recentBitrateKbps' | 'recentSlot'> {
  if (recentSlot === null || slot - recentSlot >= recentSlots) return { recentBitrateKbps: [kbps], recentSlot: slot }
  if (slot <= recentSlot)
    return { recentBitrateKbps: [...recent.slice(0, -1), Math.max(recent.at(-1) ?? 0, kbps)], recentSlot }
  const skipped = Array.from({ length: slot - recentSlot - 1 }, () => null)
  return { recentBitrateKbps: [...recent, ...skipped, kbps].slice(-recentSlots), recentSlot: slot }
}

export interface BitratePoint {
  /** The beginning of the slot, in seconds since 1970. */
  readonly at: number
  readonly kbps: number
}

/** The bitrates of the last ten minutes before `now`, oldest first. */
export function listRecentBitrates(
  { recentBitrateKbps: recent, recentSlot }: Pick<IngestRecord, 'recentBitrateKbps' | 'recentSlot'>,
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
 * The present ingest. A relay that has not reported for several intervals may be gone, so nothing counts as published since its
 * last summary.
 */
export const shownIngest = <Time>(
  last: ShownIngest<Time> & { readonly at: Time; readonly ageSeconds: number },
  healthIntervalSeconds: number,
): ShownIngest<Time> => {
  const { isPublishing, bitrateKbps, links, since, at, ageSeconds } = last
  if (ageSeconds <= summaryAgeSecondsMax(healthIntervalSeconds)) return { isPublishing, bitrateKbps, links, since }
  return { isPublishing: false, bitrateKbps: 0, links: 0, since: isPublishing ? at : since }
}
