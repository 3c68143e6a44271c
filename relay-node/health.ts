/**
 * Tells the control plane again and again that the relay is there, and hears from it whether it should still be. Only a clear
 * answer of the control plane itself ends a relay: whatever looks like its absence is waited out, since a stream runs here.
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
  /** Aborted when the relay ends for another reason. */
  readonly signal: AbortSignal
}

type Outcome =
  | { readonly is: 'accepted'; readonly nextSeconds: number }
  | { readonly is: 'ended'; readonly why: string }
  | { readonly is: 'failed'; readonly why: string }

const requestMillisMax = 5_000

/** Resolves with the reason when the control plane wants the relay to end, or once the signal is aborted. Never rejects. */
export async function reportUntilEnded(options: HealthOptions): Promise<string> {
  const { log, signal } = options
  let accepted = false
  let failures = 0
  let intervalSeconds = options.intervalSeconds
  let before = ''
  while (!signal.aborted) {
    const outcome = await report(options)
    if (signal.aborted) break
    if (outcome.is === 'ended') return outcome.why
    const now = outcome.is === 'failed' ? outcome.why : outcome.is
    // Only changes are logged: a control plane that is away for a day must not fill the disk.
    if (now !== before) log(outcome.is === 'failed' ? 'warn' : 'info', `health report ${outcome.is}`, { outcome: now })
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
  const code = error?.code
  if ((status === 404 || status === 409) && typeof code === 'string') return { is: 'ended', why: `${status} ${code}` }
  return { is: 'failed', why: `status ${status}${typeof code === 'string' ? ` ${code}` : ''}` }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
