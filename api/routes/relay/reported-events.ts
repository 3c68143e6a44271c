/** The stream events in the health report of a relay. */
import { z } from 'zod'
import type { ReportedSession } from '../../../db/relay/health.ts'
import { recordStreamEvents } from '../../../db/transactions/record-stream-events.ts'
import {
  followReport,
  type ReportedStreamEvent,
  reportedEventsMax,
  type StreamReport,
} from '../../../domain/relay/stream-event-history.ts'
import { streamEventKinds } from '../../../domain/relay/stream-events.ts'
import type { Services } from '../../services.ts'

const bitrateKbpsMax = 1_000_000
/** A session is not older. */
const ageMillisMax = 7 * 24 * 3_600_000

const Event = z.object({
  seq: z.int().min(1).max(2_147_483_647).describe('The number of the event in the process of the relay, from 1 on.'),
  kind: z.enum(streamEventKinds),
  age_ms: z.number().min(0).describe('How long ago it was, since the clocks of relays differ.'),
  bitrate_kbps: z.number().min(0),
})

/** An event that is not valid is dropped, and the others count. */
export const ReportedEvents = z
  .array(Event.optional().catch(undefined))
  .optional()
  .catch(undefined)
  .describe(
    'What the stream did: the events of the process that no accepted report contained yet, and always the latest one. Empty before the first. At most 100 count.',
  )

interface ReportWithEvents {
  readonly instanceId: string
  readonly events: z.output<typeof ReportedEvents>
  readonly startedAtMs: number | undefined
  readonly bitrateKbps: number | undefined
}

/** @returns undefined for a relay of a former version, which states no events. */
function toStreamReport({ instanceId, events, startedAtMs, bitrateKbps }: ReportWithEvents): StreamReport | undefined {
  if (events === undefined || startedAtMs === undefined || !Number.isSafeInteger(startedAtMs)) return undefined
  const valid = events.filter((event) => event !== undefined).slice(-reportedEventsMax)
  return {
    instanceId,
    processStartedAtMs: startedAtMs,
    bitrateKbps: wholeKbps(bitrateKbps ?? 0),
    events: valid.map(
      ({ seq, kind, age_ms, bitrate_kbps }): ReportedStreamEvent => ({
        seq,
        kind,
        ageMillis: Math.min(age_ms, ageMillisMax),
        bitrateKbps: wholeKbps(bitrate_kbps),
      }),
    ),
  }
}

const wholeKbps = (kbps: number): number => Math.round(Math.min(kbps, bitrateKbpsMax))

/** Stores the events of a report of the session's instance. Most reports have none that is new, and cost nothing. */
export async function recordReportedEvents(
  sessionId: string,
  { boundInstanceId, streamHistory }: ReportedSession,
  reported: ReportWithEvents,
  { sql, streamEventMetrics }: Pick<Services, 'sql' | 'streamEventMetrics'>,
): Promise<void> {
  const report = toStreamReport(reported)
  if (report === undefined || (boundInstanceId !== null && boundInstanceId !== report.instanceId)) return
  const { added, adopted } = followReport(streamHistory ?? undefined, report, Date.now())
  if (added.length === 0 && adopted === null) return
  for (const kind of await recordStreamEvents(sql, sessionId, report)) streamEventMetrics.countEvent(kind)
}
