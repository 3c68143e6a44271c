/** Health reports as the records of the statement that stores a batch of them (`health.ts`). */
import type { IngestReport } from '../../domain/relay/ingest.ts'
import { mergePoints, packPoint, type StreamPoint, toPoint } from '../../domain/relay/stream-record.ts'

export interface HealthReport {
  readonly sessionId: string
  readonly instanceId: string
  /** Whether it was authenticated by the instance's own secret. Such an instance has a row in `instances`. */
  readonly hasOwnSecret: boolean
  /** The number of the instance in its session. */
  readonly binding: number
  /** Whether its report is held open. */
  readonly isHeld: boolean
  /** Whether no stream comes in; undefined when the report does not state it. */
  readonly isIdle: boolean | undefined
  readonly ingest: IngestReport
}

/** Of several reports of an instance the last one is stored. Its point is that of all of them. */
export function toRecords(reports: readonly HealthReport[]) {
  const points = new Map<string, StreamPoint>()
  return reports.map((report, place) => {
    const { sessionId, instanceId, hasOwnSecret, ingest } = report
    const sender = `${sessionId} ${hasOwnSecret} ${instanceId}`
    const [earlier, own] = [points.get(sender), ingest.summary ? toPoint(ingest.summary) : undefined]
    const point = earlier && own ? mergePoints(earlier, own) : (own ?? earlier)
    if (point) points.set(sender, point)
    return toRecord(report, place, point)
  })
}

const toRecord = (
  { sessionId, instanceId, hasOwnSecret, binding, isHeld, isIdle, ingest }: HealthReport,
  place: number,
  point: StreamPoint | undefined,
) => ({
  place,
  binding,
  is_held: isHeld,
  session_id: sessionId,
  instance_id: instanceId,
  has_own_secret: hasOwnSecret,
  is_idle: isIdle ?? false,
  is_publishing: ingest.summary?.isPublishing,
  bitrate_kbps: ingest.summary?.bitrateKbps,
  links: ingest.summary?.links,
  players: ingest.summary?.players,
  stalled_players: ingest.summary?.stalledPlayers,
  usual_links: ingest.summary?.usualLinks,
  phone_code: ingest.summary?.phone,
  player_code: ingest.summary?.player,
  rtt_ms: ingest.summary?.rttMs,
  loss_pct: ingest.summary?.lossPct,
  repeat_pct: ingest.summary?.repeatPct,
  engine: ingest.summary?.engine,
  bytes_total: ingest.bytesTotal,
  publishing_ms: ingest.publishingMs,
  started_at_ms: ingest.startedAtMs,
  peak_bitrate_kbps: ingest.peakBitrateKbps,
  record_point: point && packPoint(point),
})
