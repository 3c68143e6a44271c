/**
 * Reports the health of the relay to the control plane, whose answer says whether to keep running. Outages never end a relay, since
 * it has a stream. The answer that the session is unknown, or has another instance, ends it only when it is repeated for a minute,
 * since an API on a wrong database gives it to all relays. The answer that the session is stopped ends it at once.
 * An unbound relay reports without a session until an answer assigns one, which stays its session until it ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type HealthReport, type Outcome, report } from './health-report.ts'
import type { Log } from './log.ts'
import type { RelaySession } from './session.ts'

/** The session and the interval apply until the control plane sets others. Aborted when the relay ends for any other reason. */
export interface HealthOptions extends HealthReport {
  /** Called before the first report with the assigned session, once at most. */
  readonly onAssigned: (session: RelaySession) => void
  /** Called when the signal ends a relay, before its last report, so that it has the totals of the whole stream. */
  readonly closeStreams: () => Promise<void>
  readonly log: Log
  /** How long the control plane must deny the session before the relay ends. A minute by default. */
  readonly denialMillisMin?: number
}

const defaultDenialMillisMin = 60_000
const denialsMin = 5
/** A local relay is killed after 3 s. */
const lastReportMillisMax = 1_000
/** A control plane that does not hold the replies to unbound relays must not be flooded by them. */
const unboundPauseMillisMin = 200

/** The denials since the last accepted report. */
export interface Denials {
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

export const noDenials: Denials = { count: 0, firstAt: 0, lastAt: 0 }

/** A failed report neither counts as a denial nor resets the count. */
export function countDenial(denials: Denials, outcome: Outcome['type'], now: number): Denials {
  if (outcome === 'accepted') return noDenials
  if (outcome !== 'denied') return denials
  return { count: denials.count + 1, firstAt: denials.count === 0 ? now : denials.firstAt, lastAt: now }
}

/** Whether the control plane has denied the session often and long enough to end the relay. */
export const isDenied = ({ count, firstAt, lastAt }: Denials, millisMin: number): boolean =>
  count >= denialsMin && lastAt - firstAt >= millisMin

/** Resolves with the reason when the control plane wants the relay to end, or once the signal is aborted. Never rejects. */
export async function reportUntilEnded(options: HealthOptions): Promise<string> {
  let sessionId = options.sessionId
  for (;;) {
    const end = await repeatReports(options, sessionId)
    if (end.type === 'ended') return end.reason
    sessionId = end.session.sessionId
    options.onAssigned(end.session)
    options.log('info', 'the control plane assigned a session', { sessionId })
  }
}

type End = Extract<Outcome, { type: 'ended' | 'assigned' }>

/** Resolves when the relay has to end, or when an unbound relay has a session. */
async function repeatReports(options: HealthOptions, sessionId: string | null): Promise<End> {
  const { log, signal, denialMillisMin = defaultDenialMillisMin } = options
  const isUnbound = sessionId === null
  let isAccepted = false
  let denials = noDenials
  let failures = 0
  let intervalSeconds = options.intervalSeconds
  let lastLogged = ''
  while (!signal.aborted) {
    const outcome = await report({ ...options, sessionId })
    if (signal.aborted) break
    if (outcome.type === 'ended' || outcome.type === 'assigned') return outcome
    denials = countDenial(denials, outcome.type, performance.now())
    if (outcome.type === 'denied' && isDenied(denials, denialMillisMin))
      return { type: 'ended', reason: `${outcome.reason} ${describeDenials(denials)}` }
    const result = outcome.type === 'accepted' ? outcome.type : outcome.reason
    // Only changes are logged, so that a long outage does not fill the disk.
    if (result !== lastLogged)
      log(outcome.type === 'accepted' ? 'info' : 'warn', `health report ${outcome.type}`, { outcome: result })
    lastLogged = result
    if (outcome.type === 'accepted') {
      isAccepted = true
      failures = 0
      intervalSeconds = outcome.nextSeconds
    } else {
      failures += 1
      // The interval of an unbound relay is short, since its replies are held. Failures are not.
      if (isUnbound) intervalSeconds = options.intervalSeconds
    }
    const millis = pauseMillis({ isAccepted, failures, intervalSeconds, random: Math.random() })
    await sleep(isUnbound ? Math.max(millis, unboundPauseMillisMin) : millis, undefined, { signal }).catch(() => {})
  }
  // After a failed or denied report the control plane may take the relay for lost, and must not take it for recovered.
  if (!isUnbound && isAccepted && failures === 0) await reportLast(options, sessionId)
  return { type: 'ended', reason: 'stopped by a signal' }
}

/** States the totals of the stream until its end. The control plane has stopped the session before, unless the host shuts down. */
async function reportLast(options: HealthOptions, sessionId: string): Promise<void> {
  await options.closeStreams()
  await report({ ...options, sessionId, signal: AbortSignal.timeout(lastReportMillisMax) })
}

const describeDenials = ({ count, firstAt, lastAt }: Denials): string =>
  `in ${count} answers over ${Math.round((lastAt - firstAt) / 1000)} s`

/** The time until the next report. */
export function pauseMillis({ isAccepted, failures, intervalSeconds, random }: PauseOptions): number {
  // The first accepted report makes a relay active, and its user waits for that.
  if (!isAccepted) return 500 + random * 500
  const seconds = failures === 0 ? intervalSeconds : Math.min(intervalSeconds, 2 ** Math.min(failures - 1, 16))
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
