/**
 * Reports the health of the relay to the control plane, whose answer says whether to keep running. Outages never end a
 * relay, since it has a stream. Denials end it by the rules of `denials.ts`. The answer that the session is stopped
 * ends it at once. An unbound relay reports without a session until an answer assigns one, which stays its session
 * until it ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RelayPorts } from '../domain/relay/ports.ts'
import { countDenial, type Denials, describeDenials, judgeDenials, noDenials, unknownMillisMax } from './denials.ts'
import { reportEvents } from './extra-reports.ts'
import { type HealthReport, type Outcome, report } from './health-report.ts'
import type { Log } from './log.ts'
import type { Assignment } from './session.ts'
import type { StreamEvents } from './stream-events.ts'

/**
 * The session and the interval apply until the control plane sets others. Aborted when the relay ends for any other
 * reason.
 */
export interface HealthOptions extends HealthReport {
  /** Awaited before the first report with the assigned session, once at most. */
  readonly onAssigned: (session: Assignment) => Promise<void>
  /** The ports of the relay, which it states until a report with its session is accepted. */
  readonly boundPorts?: () => RelayPorts
  /** Called when the signal ends a relay, before its last report, so that it has the totals of the whole stream. */
  readonly closeStreams: () => Promise<void>
  readonly streamEvents?: StreamEvents
  readonly log: Log
  /** Called after each answer: since when the control plane has denied the session, null when it has not. */
  readonly onDenied?: (since: Date | null) => void
  /** How long the control plane must deny the session before the relay ends. A minute by default. */
  readonly denialMillisMin?: number
  /** Milliseconds of a clock that never goes back. That of the process by default. */
  readonly now?: () => number
}

const defaultDenialMillisMin = 60_000
/** A local relay is killed after 3 s. */
const lastReportMillisMax = 1_000
/** A control plane that does not hold the replies to unbound relays must not be flooded by them. */
const unboundPauseMillisMin = 200
/** Nor by those with a session, whose replies are held too. After one that was, the next report follows at once. */
const pauseMillisMin = 100
const heldMillisMin = 1_000
/**
 * A relay that was cut off and replaced ends with the next answer that it gets. With the limit of a request that is
 * sooner than the health timeout after its way to the control plane is open again.
 */
const failureSecondsMax = 4

/**
 * Resolves with the reason when the control plane wants the relay to end, or once the signal is aborted. Never rejects.
 */
export async function reportUntilEnded(options: HealthOptions): Promise<string> {
  let { sessionId, binding } = options
  for (;;) {
    const stopExtra = startExtraReports({ ...options, binding }, sessionId)
    const end = await repeatReports({ ...options, binding }, sessionId)
    stopExtra()
    if (end.type === 'ended') return end.reason
    sessionId = end.session.sessionId
    binding = end.session.binding
    await options.onAssigned(end.session)
    options.log('info', 'the control plane assigned a session', { sessionId })
  }
}

/** Reports events of the stream beside the usual reports of a session. @returns a function that stops it. */
function startExtraReports(options: HealthOptions, sessionId: string | null): () => void {
  const { streamEvents, boundPorts, signal } = options
  const stopped = new AbortController()
  const stop = () => stopped.abort()
  if (sessionId === null || streamEvents === undefined || signal.aborted) return stop
  signal.addEventListener('abort', stop, { once: true })
  // One of these may be the first report of the session that arrives.
  void reportEvents(streamEvents, { ...options, sessionId, ports: boundPorts?.(), signal: stopped.signal })
  return stop
}

type End = Extract<Outcome, { type: 'ended' | 'assigned' }>

/** Resolves when the relay has to end, or when an unbound relay has a session. */
async function repeatReports(options: HealthOptions, sessionId: string | null): Promise<End> {
  const { log, signal } = options
  const isUnbound = sessionId === null
  const watch = watchDenials(options)
  let isAccepted = false
  let failures = 0
  let intervalSeconds = options.intervalSeconds
  let epoch: string | undefined
  let lastLogged = ''
  while (!signal.aborted) {
    const ports = isAccepted ? undefined : options.boundPorts?.()
    const startedAt = performance.now()
    const outcome = await report({ ...options, sessionId, epoch, ports, isFirst: !isAccepted })
    const waitedMillis = performance.now() - startedAt
    if (signal.aborted) break
    if (outcome.type === 'ended' || outcome.type === 'assigned') return outcome
    const result = outcome.type === 'accepted' ? outcome.type : outcome.reason
    // Only changes are logged, so that a long outage does not fill the disk.
    if (result !== lastLogged)
      log(outcome.type === 'accepted' ? 'info' : 'warn', `health report ${outcome.type}`, { outcome: result })
    lastLogged = result
    const end = watch(outcome)
    if (end) return end
    if (outcome.type === 'accepted') {
      isAccepted = true
      epoch = outcome.epoch ?? epoch
      if (outcome.admission) options.admissions.onChange(outcome.admission)
      failures = 0
      intervalSeconds = outcome.nextSeconds
    } else {
      failures += 1
      // The reply to a report that is held asks for the next one at once. Failures are not held.
      intervalSeconds = options.intervalSeconds
    }
    const millis = pauseMillis({ isAccepted, failures, intervalSeconds, random: Math.random() })
    const leastMillis = isUnbound ? unboundPauseMillisMin : waitedMillis < heldMillisMin ? pauseMillisMin : 0
    await sleep(Math.max(millis, leastMillis), undefined, { signal }).catch(() => {})
  }
  // After a failed or denied report the control plane may take the relay for lost, and must not take it for recovered.
  if (!isUnbound && isAccepted && failures === 0) await reportLast(options, sessionId)
  return { type: 'ended', reason: 'stopped by a signal' }
}

/**
 * States the totals of the stream until its end. The control plane has stopped the session before, unless the host
 * shuts down.
 */
async function reportLast(options: HealthOptions, sessionId: string): Promise<void> {
  await options.closeStreams()
  await report({ ...options, sessionId, isLast: true, signal: AbortSignal.timeout(lastReportMillisMax) })
}

/** @returns a function that takes each outcome in turn, and answers whether the relay has to end. */
function watchDenials(options: HealthOptions): (outcome: Outcome) => End | undefined {
  const { log, onDenied, summarizeIngest, denialMillisMin: millisMin = defaultDenialMillisMin } = options
  const { now = () => performance.now() } = options
  let denials: Denials = noDenials
  let since: Date | null = null
  let isGoingOn = false
  let bytes = 0
  let lastDataAt: number | undefined
  return (outcome) => {
    const { bytes_total: bytesTotal } = summarizeIngest()
    if (bytesTotal > bytes) lastDataAt = now()
    bytes = bytesTotal
    denials = countDenial(denials, outcome, now())
    since = denials.all.count === 0 ? null : (since ?? new Date())
    onDenied?.(since)
    if (since === null) isGoingOn = false
    if (since === null || outcome.type !== 'denied') return undefined
    const verdict = judgeDenials(denials, { millisMin, lastDataAt })
    if (verdict === 'ending') return { type: 'ended', reason: `${outcome.reason} ${describeDenials(denials)}` }
    if (verdict === 'going_on' && !isGoingOn) {
      const until = new Date(since.getTime() + unknownMillisMax)
      log('error', 'the control plane does not know this relay, which goes on with its stream', { since, until })
      isGoingOn = true
    }
    return undefined
  }
}

/** The time until the next report. */
export function pauseMillis({ isAccepted, failures, intervalSeconds, random }: PauseOptions): number {
  // The first accepted report makes a relay active, and its user waits for that.
  if (!isAccepted) return 500 + random * 500
  const seconds = failures === 0 ? intervalSeconds : Math.min(intervalSeconds, 2 ** (failures - 1), failureSecondsMax)
  return seconds * 1000 * (0.9 + random * 0.1)
}

interface PauseOptions {
  /** Whether a report has ever been accepted. */
  readonly isAccepted: boolean
  /** Failed or denied reports in a row. */
  readonly failures: number
  readonly intervalSeconds: number
  /** From 0 to 1. Spreads the reports of relays that started together. */
  readonly random: number
}
