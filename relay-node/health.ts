/**
 * Tells the control plane again and again that the relay is there, and hears from it whether it should still be. Only a clear
 * answer of the control plane itself ends a relay: whatever looks like its absence is waited out, since a stream runs here.
 * That it does not know the session, or knows it on another instance, is what an api on a wrong database says to all relays
 * at once: it has to be repeated for a minute. That the session is stopped, only the right database can say.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from './log.ts'
import type { StatsReply } from './stats.ts'

export interface HealthOptions {
  readonly apiUrl: string
  readonly authSecret: string
  readonly sessionId: string
  readonly instanceId: string
  /** Between reports, when the control plane hasn't said. */
  readonly intervalSeconds: number
  readonly showStats: () => StatsReply
  readonly log: Log
  /** For how long the control plane has to deny the session before the relay ends; a minute unless given. */
  readonly denialMillisMin?: number
  /** Aborted when the relay ends for another reason. */
  readonly signal: AbortSignal
}

type Outcome =
  | { readonly is: 'accepted'; readonly nextSeconds: number }
  | { readonly is: 'ended'; readonly why: string }
  /** The control plane has no such session, or has it on another instance. */
  | { readonly is: 'denied'; readonly why: string }
  | { readonly is: 'failed'; readonly why: string }

const requestMillisMax = 5_000
const usualDenialMillisMin = 60_000
const denialsMin = 5

/** The denials since the last accepted report. */
export interface Denials {
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

export const noDenials: Denials = { count: 0, firstAt: 0, lastAt: 0 }

/** A report that failed says nothing about the session, so it neither counts nor starts the count again. */
export function withOutcome(denials: Denials, outcome: Outcome['is'], now: number): Denials {
  if (outcome === 'accepted') return noDenials
  if (outcome !== 'denied') return denials
  return { count: denials.count + 1, firstAt: denials.count === 0 ? now : denials.firstAt, lastAt: now }
}

export const isConvincing = ({ count, firstAt, lastAt }: Denials, millisMin: number): boolean =>
  count >= denialsMin && lastAt - firstAt >= millisMin

/** Resolves with the reason when the control plane wants the relay to end, or once the signal is aborted. Never rejects. */
export async function reportUntilEnded(options: HealthOptions): Promise<string> {
  const { log, signal, denialMillisMin = usualDenialMillisMin } = options
  let accepted = false
  let denials = noDenials
  let failures = 0
  let intervalSeconds = options.intervalSeconds
  let before = ''
  while (!signal.aborted) {
    const outcome = await report(options)
    if (signal.aborted) break
    if (outcome.is === 'ended') return outcome.why
    denials = withOutcome(denials, outcome.is, performance.now())
    if (outcome.is === 'denied' && isConvincing(denials, denialMillisMin))
      return `${outcome.why} in ${denials.count} answers over ${Math.round((denials.lastAt - denials.firstAt) / 1000)} s`
    const now = outcome.is === 'accepted' ? outcome.is : outcome.why
    // Only changes are logged: a control plane that is away for a day must not fill the disk.
    if (now !== before)
      log(outcome.is === 'accepted' ? 'info' : 'warn', `health report ${outcome.is}`, { outcome: now })
    before = now
    if (outcome.is === 'accepted') {
      accepted = true
      failures = 0
      intervalSeconds = outcome.nextSeconds
    } else failures += 1
    await sleep(pauseMillis({ accepted, failures, intervalSeconds, chance: Math.random() }), undefined, {
      signal,
    }).catch(() => {})
  }
  return 'asked to end'
}

/**
 * How long to wait before the next report.
 * @param chance from 0 to 1; spreads relays that started together.
 */
export function pauseMillis(situation: {
  accepted: boolean
  failures: number
  intervalSeconds: number
  chance: number
}): number {
  const { accepted, failures, intervalSeconds, chance } = situation
  // Somebody waits for a relay to become active, and it does so by its first accepted report.
  if (!accepted) return 500 + chance * 500
  const seconds = failures === 0 ? intervalSeconds : Math.min(intervalSeconds, 2 ** Math.min(failures - 1, 16))
  return seconds * 1000 * (0.9 + chance * 0.1)
}

async function report(options: HealthOptions): Promise<Outcome> {
  const { apiUrl, authSecret, sessionId, instanceId, intervalSeconds, showStats, signal } = options
  try {
    const reply = await fetch(`${apiUrl}/api/v1/relay/health`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-relay-auth': authSecret },
      body: JSON.stringify({
        session_id: sessionId,
        instance_id: instanceId,
        observed_at: new Date().toISOString(),
        stats: showStats(),
      }),
      // Followed, a redirect would carry the secret to another host.
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestMillisMax)]),
    })
    return judge(reply.status, parse(await reply.text()), intervalSeconds)
  } catch (error) {
    const { message, cause } = error as Error
    return { is: 'failed', why: cause instanceof Error ? `${message}: ${cause.message}` : message }
  }
}

/** What a reply means. A 404 or 409 counts only with an error code: without one it is a proxy that speaks, not the API. */
export function judge(status: number, body: unknown, intervalSeconds: number): Outcome {
  const { desired, report_in_seconds, error } = (body ?? {}) as {
    desired?: unknown
    report_in_seconds?: unknown
    error?: { code?: unknown }
  }
  if (status === 200 && desired === 'stop') return { is: 'ended', why: 'the control plane wants it stopped' }
  if (status === 200 && desired === 'run') {
    const asked = typeof report_in_seconds === 'number' ? report_in_seconds : intervalSeconds
    return { is: 'accepted', nextSeconds: Math.min(Math.max(asked, 0.1), 300) }
  }
  const code = typeof error?.code === 'string' ? error.code : undefined
  const why = `${status} ${code}`
  if (status === 409 && code === 'invalid_transition') return { is: 'ended', why }
  if ((status === 404 || status === 409) && code !== undefined) return { is: 'denied', why }
  return { is: 'failed', why: `status ${status}${code === undefined ? '' : ` ${code}`}` }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
