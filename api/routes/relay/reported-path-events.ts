/** The path events in the health report of a relay. */
import { z } from 'zod'
import type { ReportedSession } from '../../../db/relay/health.ts'
import type { NewPathEvent } from '../../../db/relay/path-events.ts'
import { recordPathEvents } from '../../../db/transactions/record-path-events.ts'
import { callerRoles, reportedPathEventsMax } from '../../../domain/relay/path-events.ts'
import { relayRefusals } from '../../../domain/relay/refusals.ts'
import type { Services } from '../../services.ts'

/** More than a relay has. */
const countMax = 1_000
const callersMax = 1_000_000_000
/** A session is not older. */
const ageMillisMax = 7 * 24 * 3_600_000

const common = {
  seq: z.int().min(1).max(2_147_483_647).describe('The number of the event in the process of the relay, from 1 on.'),
  age_ms: z.number().min(0).describe('How long ago it was, since the clocks of relays differ.'),
}
const small = z.int().min(0).max(countMax)

const Event = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('links_changed'), ...common, from: small, to: small }),
  z.object({
    kind: z.enum(['player_joined', 'player_left']),
    ...common,
    players: small.describe('How many play after it.'),
  }),
  z.object({
    kind: z.literal('caller_refused'),
    ...common,
    reason: z.enum(relayRefusals),
    role: z.enum(callerRoles),
    count: z.int().min(1).max(callersMax).describe('The callers since the last event of this reason and role.'),
  }),
])

/** An event that is not valid is dropped, and the others count. */
export const ReportedPathEvents = z
  .array(Event.optional().catch(undefined))
  .optional()
  .catch(undefined)
  .describe(
    'What happened on the signal path beside the stream: the events of the process that no accepted report contained yet, the oldest ones first. At most 20 count.',
  )

interface ReportWithPathEvents {
  readonly instanceId: string
  readonly pathEvents: z.output<typeof ReportedPathEvents>
  readonly startedAtMs: number | undefined
}

/** Stores the events of a report of the session's instance. Most reports have none, and cost nothing. */
export async function recordReportedPathEvents(
  sessionId: string,
  { boundInstanceId }: ReportedSession,
  { instanceId, pathEvents = [], startedAtMs }: ReportWithPathEvents,
  { sql }: Pick<Services, 'sql'>,
): Promise<void> {
  if (pathEvents.length === 0 || startedAtMs === undefined || !Number.isSafeInteger(startedAtMs)) return
  if (boundInstanceId !== null && boundInstanceId !== instanceId) return
  const events = pathEvents
    .filter((event) => event !== undefined)
    .map(({ age_ms, ...event }): NewPathEvent => ({ ...event, ageMillis: Math.min(age_ms, ageMillisMax) }))
    .toSorted((a, b) => a.seq - b.seq)
    .slice(0, reportedPathEventsMax)
  if (events.length > 0) await recordPathEvents(sql, sessionId, { instanceId, processStartedAtMs: startedAtMs }, events)
}
