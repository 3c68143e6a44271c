/** Rules of what accounts may use, and when: the effect of billing events, the limit of relays, and deadlines. */
import type { Evidence, SessionRow, TransitionRow } from './evidence.ts'
import { faultMillis } from './fault-time.ts'
import { type ModelEvent, modelEntitlement, toGrantEvent, toModelEvent } from './model.ts'
import { times } from './service-times.ts'

const paymentGraceMillis = times.paymentGraceSeconds * 1000
/** How late an effect may be while the service is whole. */
const lateMillisMax = 30_000
/** How late it may be in any case. */
const latestMillisMax = 240_000
/** Timestamps of Postgres are those of the begin of the transaction. */
const earlyMillisMax = 100

/** An event of the model, and when it reached the service: between the first request and the first reply. */
interface TimedEvent {
  readonly event: ModelEvent
  readonly from: number
  readonly until: number
}

function eventsOf({ journal, events }: Evidence, userId: string): TimedEvent[] {
  const applied = new Map(events.map((row) => [row.eventKey, row.appliedAt ?? Number.POSITIVE_INFINITY]))
  const deliveries = [...journal.deliveries.values()]
    .filter((delivery) => delivery.userId === userId && delivery.firstSentAt > 0)
    .map((delivery) => ({
      event: toModelEvent(delivery),
      from: delivery.firstSentAt,
      until: applied.get(delivery.id) ?? Number.POSITIVE_INFINITY,
    }))
  const grants = journal.accountChanges
    .filter((change) => change.userId === userId && change.type === 'grant')
    // A grant is applied within its request, or by the job that wakes accounts.
    .map((grant) => ({ event: toGrantEvent(grant), from: grant.sentAt, until: grant.answeredAt + latestMillisMax }))
  return [...deliveries, ...grants].toSorted((a, b) => a.from - b.from)
}

/** More events are rarely under way at a time, and their number of subsets is too large. */
const openMax = 10

/** Each set of events that may have been applied at a time: those that were, and any of those that were under way. */
function possibleEvents(timed: readonly TimedEvent[], at: number): ModelEvent[][] {
  const certain = timed.filter(({ until }) => until <= at).map(({ event }) => event)
  const open = timed.filter(({ from, until }) => from <= at && until > at).slice(0, openMax)
  return Array.from({ length: 2 ** open.length }, (_, chosen) => [
    ...certain,
    ...open.filter((__, index) => (chosen >> index) % 2 === 1).map(({ event }) => event),
  ])
}

/** A session certainly counts against the limit until anything asks it to end. */
function countsUntil(session: SessionRow, { journal, transitions }: Evidence): number {
  const stops = journal.stops.filter(({ sessionId }) => sessionId === session.id).map(({ sentAt }) => sentAt)
  const ends = transitions
    .filter(
      ({ sessionId, reason, toState }) =>
        sessionId === session.id && (toState === 'stopped' || reason === 'stop_requested'),
    )
    .map(({ at }) => at)
  return Math.min(...stops, ...ends, session.command === 'run' ? Number.POSITIVE_INFINITY : session.commandedAt)
}

/** At each start the relays that run are compared with the most that any order of events allows. */
export function findEntitlementViolations(evidence: Evidence): string[] {
  const { sessions } = evidence
  const lives = sessions.map((session) => ({ session, until: countsUntil(session, evidence) }))
  return sessions.flatMap(({ id, userId, createdAt }) => {
    const count = lives.filter(
      ({ session, until }) => session.userId === userId && session.createdAt <= createdAt && until > createdAt,
    ).length
    const timed = eventsOf(evidence, userId)
    // The end of a payment grace period may be applied late.
    const moments = [
      createdAt,
      createdAt - lateMillisMax - faultMillis(evidence, createdAt - latestMillisMax, createdAt),
    ]
    const limits = possibleEvents(timed, createdAt).flatMap((events) =>
      moments.map((at) => modelEntitlement(events, at, paymentGraceMillis).limit),
    )
    const limit = Math.max(...limits)
    // A session that was asked to end at once may not count itself.
    return count <= Math.max(limit, 0)
      ? []
      : [`start of session ${id} makes ${count} relays of user ${userId}, expected at most ${limit}`]
  })
}

export function findBillingViolations(evidence: Evidence): string[] {
  const { journal, events, users, collectedAt } = evidence
  const accepted = [...journal.deliveries.values()].filter(({ acceptedAt }) => acceptedAt.length > 0)
  const lost = accepted.flatMap(({ id, userId, body }) => {
    const rows = events.filter(({ eventKey }) => eventKey === id)
    const text = `billing event ${id} (${body.type}) of user ${userId}`
    if (rows.length !== 1) return [`${text} was accepted and has ${rows.length} rows, expected 1`]
    const [row] = rows
    if (row?.userId !== userId) return [`${text} has the user ${row?.userId}`]
    return row.status === 'applied' ? [] : [`${text} is ${row.status} (${row.error}), expected applied`]
  })
  const invented = events
    .filter(({ eventKey, provider }) => provider !== 'operator' && !journal.deliveries.has(eventKey))
    .map(({ eventKey }) => `billing event ${eventKey} has a row and was never sent`)
  const stored = new Set(events.map(({ eventKey }) => eventKey))
  const wrong = users.flatMap(({ id, planTier, addons }) => {
    const model = modelEntitlement(
      [...journal.deliveries.values()]
        .filter((delivery) => delivery.userId === id && stored.has(delivery.id))
        .map(toModelEvent)
        .concat(
          journal.accountChanges.filter((change) => change.userId === id && change.type === 'grant').map(toGrantEvent),
        ),
      collectedAt,
      paymentGraceMillis,
    )
    return planTier === model.planTier && addons === model.addons
      ? []
      : [`user ${id} has ${planTier} with ${addons} add-ons, expected ${model.planTier} with ${model.addons}`]
  })
  return [...lost, ...invented, ...wrong]
}

export const findDeadlineViolations = (evidence: Evidence): string[] => [
  ...findWrongEnds(evidence),
  ...findWrongLosses(evidence),
  ...findUnpaidRelays(evidence),
]

/** Each state with a deadline, and how it was left. */
function findWrongEnds(evidence: Evidence): string[] {
  const { sessions, transitions } = evidence
  return sessions.flatMap((session) => {
    const rows = transitions.filter(({ sessionId }) => sessionId === session.id)
    return [undefined, ...rows].flatMap((entered, index) => {
      const left = rows[index]
      const deadline = deadlineOf(entered)
      if (!deadline) return []
      const enteredAt = entered?.at ?? session.createdAt
      const leftAt = left?.at ?? evidence.collectedAt
      const text = `session ${session.id} was in ${entered?.toState ?? 'provisioning'} for ${Math.round(leftAt - enteredAt)} ms`
      const isEarly = left?.reason === deadline.reason && leftAt < enteredAt + deadline.millis - earlyMillisMax
      return isEarly || isLate(evidence, enteredAt + deadline.millis, leftAt)
        ? [`${text} until ${left?.reason}, expected ${deadline.reason} after ${deadline.millis} ms`]
        : []
    })
  })
}

function deadlineOf(entered: TransitionRow | undefined) {
  if (!entered) return { reason: 'provision_timeout', millis: times.provisionTimeoutSeconds * 1000 }
  if (entered.toState !== 'grace') return undefined
  const isLost = entered.reason === 'health_lost'
  return {
    reason: 'grace_elapsed',
    millis: (isLost ? Math.max(times.graceSeconds, times.replacementSeconds) : times.stopGraceSeconds) * 1000,
  }
}

/** Health is lost only by a relay whose reports did not come for the whole timeout, unless its instance is gone. */
function findWrongLosses({ journal, transitions, cloudInstances, sessions }: Evidence): string[] {
  return transitions
    .filter(({ reason, toState }) => reason === 'health_lost' && toState === 'grace')
    .flatMap(({ sessionId, at }) => {
      const report = journal.reports.findLast(
        (entry) =>
          entry.sessionId === sessionId &&
          entry.answeredAt <= at &&
          entry.sentAt > at - times.healthTimeoutSeconds * 1000 + earlyMillisMax,
      )
      const isGone = cloudInstances.some(
        (instance) => instance.sessionId === sessionId && instance.endedAt !== null && instance.endedAt <= at,
      )
      if (!report || isGone || !sessions.some(({ id }) => id === sessionId)) return []
      return [`session ${sessionId} lost its health ${Math.round(at - report.sentAt)} ms after a report was accepted`]
    })
}

/** A relay does not run on after its account may not use any. */
function findUnpaidRelays(evidence: Evidence): string[] {
  return evidence.sessions.flatMap((session) => {
    const timed = eventsOf(evidence, session.userId)
    const until = session.stoppedAt ?? evidence.collectedAt
    const unpaidFrom = unpaidSince(timed, session.createdAt, until)
    if (unpaidFrom === undefined || !isLate(evidence, unpaidFrom, until)) return []
    return [
      `session ${session.id} ran for ${Math.round(until - unpaidFrom)} ms after the plan of user ${session.userId} ended`,
    ]
  })
}

/** Since when the account may not use any relay, without a break until `until`. */
function unpaidSince(timed: readonly TimedEvent[], from: number, until: number): number | undefined {
  const events = timed.map(({ event }) => event)
  const deadlines = events.flatMap(({ at, type, until: end }) =>
    type === 'payment.failed' ? [at + paymentGraceMillis] : [end ?? at],
  )
  const arrivals = timed.map((event) => (Number.isFinite(event.until) ? event.until : event.from))
  const moments = [from, ...deadlines, ...arrivals].filter((at) => at >= from && at <= until).toSorted((a, b) => a - b)
  const isPaid = (at: number) =>
    possibleEvents(timed, at).some((possible) => modelEntitlement(possible, at, paymentGraceMillis).limit > 0)
  const lastPaid = moments.findLastIndex((at) => isPaid(at))
  return moments[lastPaid + 1]
}

const isLate = (evidence: Evidence, dueAt: number, doneAt: number): boolean =>
  doneAt - dueAt - faultMillis(evidence, dueAt, doneAt) > lateMillisMax || doneAt - dueAt > latestMillisMax
