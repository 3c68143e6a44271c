/** Relay time is compared with the transitions, and with what the driver saw from outside. */
import type { Evidence, ReplacementRow, SessionRow, UsageRow } from './evidence.ts'
import { faultMillis } from './fault-time.ts'
import { times } from './service-times.ts'

const toleranceMillis = 1_000
/** A timestamp is that of the begin of its transaction, and others see the change only after its end. */
const transactionMillisMax = 5_000
/** A relay that stopped reporting is charged for this long after its last report. */
const chargedMillis = 10_000

export function findUsageViolations(evidence: Evidence): string[] {
  const { sessions, transitions, usage } = evidence
  return sessions.flatMap((session) => {
    const own = usage.filter(({ sessionId }) => sessionId === session.id)
    const activeAt = transitions.find(({ sessionId, toState }) => sessionId === session.id && toState === 'active')?.at
    if (activeAt === undefined)
      return own.length === 0 ? [] : [`session ${session.id} was never active, and has ${own.length} usage intervals`]
    const replaced = evidence.replacements.filter(({ sessionId }) => sessionId === session.id)
    const intervals = own.toSorted((a, b) => a.startedAt - b.startedAt)
    const [first, last] = [intervals[0], intervals.at(-1)]
    // One interval for each relay that made the session active.
    if (!first || !last || intervals.length > replaced.length + 1)
      return [`session ${session.id} has ${own.length} usage intervals after ${replaced.length} replacements`]
    const gaps = findGapViolations(session, intervals, replaced)
    // It ended before a relay that had taken over made it active again.
    const isEndLost = replaced.some(
      ({ lastReportAt }) => Math.abs(lastReportAt - (last.endedAt ?? 0)) <= toleranceMillis,
    )
    if (gaps.length === 0 && isEndLost) return []
    const whole = { ...last, startedAt: first.startedAt }
    return [...gaps, ...checkTransitions(session, whole, activeAt), ...checkSighting(evidence, session, whole)]
  })
}

/** No time counts between the last report of a relay and the first of the one that has replaced it. */
const findGapViolations = (
  { id }: SessionRow,
  intervals: readonly UsageRow[],
  replaced: readonly ReplacementRow[],
): string[] =>
  replaced.flatMap(({ lastReportAt, boundAt }) =>
    intervals
      .filter(({ startedAt, endedAt }) => {
        const from = Math.max(startedAt, lastReportAt)
        return Math.min(endedAt ?? boundAt, boundAt) - from > toleranceMillis
      })
      .map(
        ({ startedAt, endedAt }) =>
          `session ${id} is charged from ${startedAt} to ${endedAt}, and had no relay from ${lastReportAt} to ${boundAt}`,
      ),
  )

/** The last moment to be charged: the stop, or 10 s after the last report of a relay that died before. */
function endsBetween({ stoppedAt, lastReportAt }: SessionRow): { from: number; to: number } {
  const to = stoppedAt ?? Number.NaN
  const isSilent = lastReportAt !== null && to - lastReportAt > times.healthTimeoutSeconds * 1000
  // Silence during an outage of the API does not count, so that a later end is right as well.
  return { from: isSilent ? Math.min(to, lastReportAt + chargedMillis) : to, to }
}

function checkTransitions(session: SessionRow, { startedAt, endedAt }: UsageRow, activeAt: number): string[] {
  const { from, to } = endsBetween(session)
  const isRight =
    endedAt !== null &&
    Math.abs(startedAt - activeAt) <= toleranceMillis &&
    endedAt >= from - toleranceMillis &&
    endedAt <= to + toleranceMillis
  const text = `session ${session.id} is charged from ${startedAt} to ${endedAt}`
  return isRight ? [] : [`${text}, expected from ${activeAt} to ${from === to ? to : `${from} or up to ${to}`}`]
}

/** What replies stated limits when the relay ran, whatever the rows say. */
function checkSighting(evidence: Evidence, session: SessionRow, { startedAt, endedAt }: UsageRow): string[] {
  const seen = evidence.journal.sightings.get(session.id)
  if (!seen || endedAt === null) return []
  const { provisioningSentAt, runningSeenAt, liveSentAt, stoppedSeenAt } = seen
  const { from, to } = endsBetween(session)
  // The end of a relay that died may lie before the last reply that found its session live.
  const isShortened = from < to
  const text = `session ${session.id} is charged from ${startedAt} to ${endedAt}`
  return [
    ...(provisioningSentAt !== null && isBefore(evidence, startedAt, provisioningSentAt)
      ? [`${text}, and was seen in provisioning at ${provisioningSentAt}`]
      : []),
    ...(runningSeenAt !== null && startedAt > runningSeenAt + toleranceMillis
      ? [`${text}, and was seen active at ${runningSeenAt}`]
      : []),
    ...(!isShortened && liveSentAt !== null && isBefore(evidence, endedAt, liveSentAt)
      ? [`${text}, and was seen live at ${liveSentAt}`]
      : []),
    ...(stoppedSeenAt !== null && endedAt > stoppedSeenAt + toleranceMillis
      ? [`${text}, and was seen stopped at ${stoppedSeenAt}`]
      : []),
  ]
}

/** Whether a timestamp is so early that its transaction had ended when the request was sent, also during a fault. */
const isBefore = (evidence: Evidence, at: number, sentAt: number): boolean =>
  sentAt - at - faultMillis(evidence, at, sentAt) > toleranceMillis + transactionMillisMax
