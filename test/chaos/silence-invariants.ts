/**
 * The rule of silence: a relay that cannot report is not silent. Only what shows that its instance is gone ends its
 * session.
 */
import type { Evidence, TransitionRow } from './evidence.ts'
import { reportPath } from './plan.ts'
import { times } from './service-times.ts'

/**
 * A path counts as open for a third of the health timeout after it was last seen open, and a process that is paused
 * between its look and its record delays that by as much once more.
 */
const unnoticedMillisMax = (2 / 3) * times.healthTimeoutSeconds * 1000

/**
 * Silence has to last for its whole limit without a break in the path of reports. A session that lost its health, or
 * whose grace after that ended, had such a time, beside the part of a cut that cannot be noticed.
 */
export function findSilenceViolations(evidence: Evidence): string[] {
  const cuts = evidence.journal.faults.filter(({ target }) => target === reportPath)
  return evidence.transitions.flatMap((row) => {
    const silence = silenceOf(row, evidence)
    if (!silence || isGone(row, evidence)) return []
    const { from, limitMillis } = silence
    const isTouched = cuts.some((cut) => cut.from < row.at && cut.healedAt > from)
    const openMillis = longestOpenMillis(cuts, from, row.at)
    if (!isTouched || openMillis >= limitMillis - unnoticedMillisMax) return []
    const text = `session ${row.sessionId} went from ${row.fromState} to ${row.toState} (${row.reason})`
    return [`${text} after its relay could report for ${Math.round(openMillis)} ms at once, expected ${limitMillis} ms`]
  })
}

/** A relay that comes back after its fault reports within that time. */
const comebackMillisMax = 5_000

/** A replacement is false when its relay was neither killed, lost, frozen, silenced nor cut off before it was lost. */
export function findFalseReplacements({ journal, replacements, transitions }: Evidence): string[] {
  return replacements.flatMap(({ sessionId, instanceId, lastReportAt, boundAt }) => {
    const lostAt = transitions.findLast(
      (row) => row.sessionId === sessionId && row.reason === 'health_lost' && row.at <= boundAt,
    )?.at
    const hasFault = journal.relayFaults.some(
      ({ instanceId: failed, at, until = Number.POSITIVE_INFINITY }) =>
        failed === instanceId && at <= (lostAt ?? boundAt) && until + comebackMillisMax >= (lostAt ?? boundAt),
    )
    if (hasFault) return []
    const text = `instance ${instanceId} of session ${sessionId} was replaced at ${boundAt} without a fault`
    return [`${text}, after its last report at ${lastReportAt}`]
  })
}

/** What a transition by silence waited for, and since when; undefined for any other transition. */
function silenceOf({ sessionId, version, reason, at }: TransitionRow, { journal, transitions, sessions }: Evidence) {
  const before = transitions.find((row) => row.sessionId === sessionId && row.version === version - 1)
  if (!before) return undefined
  if (reason === 'grace_elapsed' && before.reason === 'health_lost')
    return { from: before.at, limitMillis: times.graceSeconds * 1000 }
  if (reason !== 'health_lost') return undefined
  const reports = journal.reports.filter((report) => report.sessionId === sessionId && report.answeredAt <= at)
  // The relays that are processes are not in the journal, but the row has their last report.
  const stored = sessions.find(({ id }) => id === sessionId)?.lastReportAt ?? Number.POSITIVE_INFINITY
  const lastReportAt = stored <= at ? stored : (reports.at(-1)?.sentAt ?? 0)
  return { from: Math.max(before.at, lastReportAt), limitMillis: times.healthTimeoutSeconds * 1000 }
}

const isGone = ({ sessionId, at }: TransitionRow, { journal, cloudInstances }: Evidence): boolean =>
  journal.relayFaults.some((fault) => fault.type === 'kill' && fault.sessionId === sessionId && fault.at <= at) ||
  cloudInstances.some(
    (instance) => instance.sessionId === sessionId && instance.endedAt !== null && instance.endedAt <= at,
  )

interface Cut {
  readonly from: number
  readonly healedAt: number
}

/** The longest part of a time in which the path was not cut. */
function longestOpenMillis(cuts: readonly Cut[], from: number, until: number): number {
  let openFrom = from
  let longest = 0
  for (const cut of cuts.toSorted((a, b) => a.from - b.from)) {
    longest = Math.max(longest, Math.min(cut.from, until) - openFrom)
    openFrom = Math.max(openFrom, cut.healedAt)
  }
  return Math.max(longest, until - openFrom)
}
