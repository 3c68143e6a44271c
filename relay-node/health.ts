/**
 * Reports the health of the relay to the control plane, whose answer says whether to keep running. Outages never end a relay, since
 * it has a stream. The answer that the session is unknown, or has another instance, ends it only when it is repeated for a minute,
 * since an API on a wrong database gives it to all relays. The answer that the session is stopped ends it at once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { IngestSummary } from './ingest.ts'
import type { Log } from './log.ts'

export interface HealthOptions {
  readonly apiUrl: string
  readonly authSecret: string
  readonly sessionId: string
  readonly instanceId: string
  /** The interval of reports until the control plane sets another one. */
  readonly intervalSeconds: number
  readonly summarizeIngest: () => IngestSummary
  readonly log: Log
  /** How long the control plane must deny the session before the relay ends. A minute by default. */
  readonly denialMillisMin?: number
  /** Aborted when the relay ends for any other reason. */
  readonly signal: AbortSignal
}

type Outcome =
  | { readonly type: 'accepted'; readonly nextSeconds: number }
  | { readonly type: 'ended'; readonly reason: string }
  /** The control plane does not have the session, or has it with another instance. */
  | { readonly type: 'denied'; readonly reason: string }
  | { readonly type: 'failed'; readonly reason: string }

const requestMillisMax = 5_000
const defaultDenialMillisMin = 60_000
const denialsMin = 5

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
  const { log, signal, denialMillisMin = defaultDenialMillisMin } = options
  let isAccepted = false
  let denials = noDenials
  let failures = 0
  let intervalSeconds = options.intervalSeconds
  let lastLogged = ''
  while (!signal.aborted) {
    const outcome = await report(options)
    if (signal.aborted) break
    if (outcome.type === 'ended') return outcome.reason
    denials = countDenial(denials, outcome.type, performance.now())
    if (outcome.type === 'denied' && isDenied(denials, denialMillisMin))
      return `${outcome.reason} in ${denials.count} answers over ${Math.round((denials.lastAt - denials.firstAt) / 1000)} s`
    const result = outcome.type === 'accepted' ? outcome.type : outcome.reason
    // Only changes are logged, so that a long outage does not fill the disk.
    if (result !== lastLogged)
      log(outcome.type === 'accepted' ? 'info' : 'warn', `health report ${outcome.type}`, { outcome: result })
    lastLogged = result
    if (outcome.type === 'accepted') {
      isAccepted = true
      failures = 0
      intervalSeconds = outcome.nextSeconds
    } else failures += 1
    await sleep(pauseMillis({ isAccepted, failures, intervalSeconds, random: Math.random() }), undefined, {
      signal,
    }).catch(() => {})
  }
  return 'stopped by a signal'
}

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

async function report(options: HealthOptions): Promise<Outcome> {
  const { apiUrl, authSecret, sessionId, instanceId, intervalSeconds, summarizeIngest, signal } = options
  try {
    const reply = await fetch(`${apiUrl}/api/v1/relay/health`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-relay-auth': authSecret },
      body: JSON.stringify({
        session_id: sessionId,
        instance_id: instanceId,
        observed_at: new Date().toISOString(),
        stats: summarizeIngest(),
      }),
      // A redirect would send the secret to another host.
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestMillisMax)]),
    })
    return interpretReply(reply.status, parse(await reply.text()), intervalSeconds)
  } catch (error) {
    const { message, cause } = error as Error
    return { type: 'failed', reason: cause instanceof Error ? `${message}: ${cause.message}` : message }
  }
}

/** A 404 or 409 without an error code comes from a proxy, not from the API, and is a failed report. */
export function interpretReply(status: number, body: unknown, intervalSeconds: number): Outcome {
  const { desired, report_in_seconds, error } = (body ?? {}) as {
    desired?: unknown
    report_in_seconds?: unknown
    error?: { code?: unknown }
  }
  if (status === 200 && desired === 'stop') return { type: 'ended', reason: 'stopped by the control plane' }
  if (status === 200 && desired === 'run') {
    const requestedSeconds = typeof report_in_seconds === 'number' ? report_in_seconds : intervalSeconds
    return { type: 'accepted', nextSeconds: Math.min(Math.max(requestedSeconds, 0.1), 300) }
  }
  const code = typeof error?.code === 'string' ? error.code : undefined
  const reason = `${status} ${code}`
  if (status === 409 && code === 'invalid_transition') return { type: 'ended', reason }
  if ((status === 404 || status === 409) && code !== undefined) return { type: 'denied', reason }
  return { type: 'failed', reason: `status ${status}${code === undefined ? '' : ` ${code}`}` }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
