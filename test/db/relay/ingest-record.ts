/**
 * What `db/relay/health.ts` stores about the ingest of a session, one report after the other. The product computes it
 * in SQL, for many sessions in one statement; a property compares both.
 */
import {
  type IngestReport,
  type IngestSummary,
  type RecentBitrates,
  recentSlots,
  slotSeconds,
} from '../../../domain/relay/ingest.ts'
import {
  bytesReceivedMax,
  type ProcessTotals,
  type SessionTotals,
  secondsPublishingMax,
} from '../../../domain/relay/ingest-totals.ts'

export const noProcess: ProcessTotals = { bytesTotal: null, publishingMs: null, startedAtMs: null }

/** What is stored about the ingest of a session. The totals of a process are those of the latest one. */
export interface IngestRecord extends ProcessTotals, SessionTotals, RecentBitrates {
  /** The last summary and when it was reported; null before the first. */
  readonly summary: IngestSummary | null
  readonly summaryAt: number | null
  /** Since when `isPublishing` has its present value. */
  readonly publishingSince: number | null
  readonly peakBitrateKbps: number
}

export const noIngest: IngestRecord = {
  summary: null,
  summaryAt: null,
  publishingSince: null,
  ...noProcess,
  bytesReceived: 0,
  peakBitrateKbps: 0,
  secondsPublishing: 0,
  recentBitrateKbps: [],
  recentSlot: null,
}

/**
 * The record after a report.
 * @param isSameInstance whether the report before came from the same instance.
 */
export function ingestAfter(
  record: IngestRecord,
  report: IngestReport,
  { now, isSameInstance, ageSecondsMax }: { now: number; isSameInstance: boolean; ageSecondsMax: number },
): IngestRecord {
  const { summary } = report
  const peakBitrateKbps = Math.max(record.peakBitrateKbps, report.peakBitrateKbps)
  const withTotals = { ...record, ...totalsAfter(record, report, isSameInstance), peakBitrateKbps }
  if (summary === null) return withTotals
  const wasPublishing = record.summary?.isPublishing
  const age = record.summaryAt === null ? 0 : Math.max(0, now - record.summaryAt)
  // The time of a relay that does not measure it.
  const judgedSeconds =
    report.publishingMs === null && wasPublishing && summary.isPublishing ? Math.min(age, ageSecondsMax) : 0
  return {
    ...withTotals,
    summary,
    summaryAt: now,
    publishingSince: wasPublishing === summary.isPublishing ? record.publishingSince : now,
    secondsPublishing: Math.min(withTotals.secondsPublishing + judgedSeconds, secondsPublishingMax),
    ...recentAfter(record, summary.bitrateKbps, Math.floor(now / slotSeconds)),
  }
}

function recentAfter(
  { recentBitrateKbps: recent, recentSlot }: IngestRecord,
  kbps: number,
  slot: number,
): RecentBitrates {
  if (recentSlot === null || slot - recentSlot >= recentSlots) return { recentBitrateKbps: [kbps], recentSlot: slot }
  if (slot <= recentSlot)
    return { recentBitrateKbps: [...recent.slice(0, -1), Math.max(recent.at(-1) ?? 0, kbps)], recentSlot }
  const skipped = Array.from({ length: slot - recentSlot - 1 }, () => null)
  return { recentBitrateKbps: [...recent, ...skipped, kbps].slice(-recentSlots), recentSlot: slot }
}

/** @param isSameInstance whether the report before came from the same instance. */
function totalsAfter(
  record: ProcessTotals & SessionTotals,
  { bytesTotal, publishingMs, startedAtMs }: ProcessTotals,
  isSameInstance: boolean,
): ProcessTotals & SessionTotals {
  if (bytesTotal === null) return record
  const before = isSameInstance ? record : noProcess
  const isStartKnown = startedAtMs !== null && before.startedAtMs !== null
  const isLater = !isSameInstance || (isStartKnown && startedAtMs > before.startedAtMs)
  if (isStartKnown && startedAtMs < before.startedAtMs) return record
  const { secondsPublishing } = record
  const bytesBefore = isLater ? 0 : (before.bytesTotal ?? 0)
  // An earlier version of the service has judged the time of a process that is known without one.
  const msBefore = isLater ? 0 : (before.publishingMs ?? secondsPublishing * 1000)
  const seconds = secondsPublishing + Math.max(0, (publishingMs ?? 0) - msBefore) / 1000
  return {
    bytesTotal: Math.max(bytesBefore, bytesTotal),
    publishingMs: isLater ? publishingMs : larger(before.publishingMs, publishingMs),
    startedAtMs: isLater ? startedAtMs : larger(before.startedAtMs, startedAtMs),
    bytesReceived: Math.min(record.bytesReceived + Math.max(0, bytesTotal - bytesBefore), bytesReceivedMax),
    secondsPublishing: Math.min(seconds, secondsPublishingMax),
  }
}

const larger = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b)
