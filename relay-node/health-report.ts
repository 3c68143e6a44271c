/** One health report of a relay, and what its reply means. */
import { portNames, type RelayPorts } from '../domain/relay/ports.ts'
import { isUuid } from '../domain/uuid.ts'
import { withSignal } from '../platform/timeout.ts'
import { type Admission, admitPlainToken, readAdmission } from './admission.ts'
import { now } from './clock.ts'
import type { FormatReport } from './format-report.ts'
import type { IngestSummary } from './ingest.ts'
import type { PathEvents } from './path-events.ts'
import type { Assignment } from './session.ts'
import type { StreamEvents } from './stream-events.ts'

export interface Admissions {
  /** Of what the relay admits by; null for none. The reply to another one than the present contains the present. */
  readonly revision: () => number | null
  /** The hashes of the play keys that were used since the last call. */
  readonly takeUsedPlayKeys: () => string[]
  readonly onChange: (admission: Admission) => void
}

export interface HealthReport {
  readonly apiUrl: string
  readonly authSecret: string
  /**
   * Null while the relay is unbound. The control plane then holds its reply until it assigns a session, or for some
   * seconds.
   */
  readonly sessionId: string | null
  readonly instanceId: string
  /** The number of the instance in its session. */
  readonly binding?: number | undefined
  /** Stated in the first reports with a session. */
  readonly ports?: RelayPorts | undefined
  /** The interval of reports where the reply has none. */
  readonly intervalSeconds: number
  /** The one of the last accepted report that had one: a restored database has another one. */
  readonly epoch?: string | undefined
  readonly summarizeIngest: () => IngestSummary
  /** Those that each report with a session states, until one with them was accepted. */
  readonly streamEvents?: Pick<StreamEvents, 'list' | 'accept'>
  /** Those that usual reports with a session state, until one with them was accepted. */
  readonly pathEvents?: Pick<PathEvents, 'list' | 'accept'>
  /** The format of the stream, as those. */
  readonly format?: Pick<FormatReport, 'pending' | 'accept'>
  readonly admissions: Admissions
  /** No report was accepted before. */
  readonly isFirst?: boolean
  /** The reply is not to be held. */
  readonly isLast?: boolean
  /** It is sent beside the usual ones, one of which may be held. */
  readonly isExtra?: boolean
  readonly signal: AbortSignal
}

export type Outcome =
  | {
      readonly type: 'accepted'
      readonly nextSeconds: number
      readonly epoch?: string
      /** What the relay admits by from now on, where that has changed. */
      readonly admission?: Admission
    }
  /** An unbound relay has its session. */
  | { readonly type: 'assigned'; readonly session: Assignment }
  | { readonly type: 'ended'; readonly reason: string }
  /** The control plane does not have the session (`isUnknown`), or has it with another instance. */
  | { readonly type: 'denied'; readonly reason: string; readonly isUnknown: boolean }
  | { readonly type: 'failed'; readonly reason: string }

const requestMillisMax = 5_000
/** How long the control plane may hold the reply to an unbound relay, and to one with a session. */
const unboundWaitSeconds = 15
const waitSecondsMax = 7
/** The first reply that a process reads takes it 5 to 25 ms longer than later ones. It should not be an assignment. */
const firstWaitSeconds = 0.1

const toReported = ({ srtlaPort, publishPort, playPort, statsPort }: RelayPorts) => ({
  srtla: srtlaPort,
  publish: publishPort,
  play: playPort,
  stats: statsPort,
})

/** Never rejects. */
export async function report(options: HealthReport): Promise<Outcome> {
  const { apiUrl, authSecret, sessionId, instanceId, binding, ports, intervalSeconds, epoch, signal } = options
  const isUnbound = sessionId === null
  try {
    const unboundSeconds = options.isFirst ? firstWaitSeconds : unboundWaitSeconds
    const waitSeconds = isUnbound ? unboundSeconds : options.isLast || options.isExtra ? 0 : waitSecondsMax
    const millisMax = requestMillisMax + waitSeconds * 1000
    const events = isUnbound ? undefined : options.streamEvents?.list(now())
    const pathEvents = isUnbound || options.isExtra ? [] : (options.pathEvents?.list(now()) ?? [])
    const format = isUnbound || options.isExtra ? undefined : options.format?.pending()
    const { status, text } = await withSignal(millisMax, signal, async (limited) => {
      const reply = await fetch(`${apiUrl}/api/v1/relay/health`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-relay-auth': authSecret },
        body: JSON.stringify({
          session_id: sessionId,
          instance_id: instanceId,
          ...(waitSeconds === 0 ? {} : { wait_seconds: waitSeconds }),
          ...(options.isExtra ? { is_extra: true } : {}),
          admission_revision: options.admissions.revision(),
          ...(isUnbound ? {} : { epoch, binding, ports: ports && toReported(ports), events, ...usedPlayKeys(options) }),
          ...(pathEvents.length === 0 ? {} : { path_events: pathEvents }),
          stream_format: format,
          observed_at: new Date().toISOString(),
          stats: { ...options.summarizeIngest(), started_at_ms: Math.round(performance.timeOrigin) },
        }),
        // A redirect would send the secret to another host.
        redirect: 'error',
        signal: limited,
      })
      return { status: reply.status, text: await reply.text() }
    })
    const body = parse(text)
    const outcome = interpretReply(status, body, intervalSeconds)
    const lastEvent = events?.at(-1)
    if (outcome.type === 'accepted' && lastEvent) options.streamEvents?.accept(lastEvent.seq)
    const lastPathEvent = pathEvents.at(-1)
    if (outcome.type === 'accepted' && lastPathEvent) options.pathEvents?.accept(lastPathEvent.seq)
    if (outcome.type === 'accepted' && format) options.format?.accept(format)
    return isUnbound && outcome.type === 'accepted' ? (readAssignment(body) ?? outcome) : outcome
  } catch (error) {
    const { message, cause } = error as Error
    return { type: 'failed', reason: cause instanceof Error ? `${message}: ${cause.message}` : message }
  }
}

const usedPlayKeys = ({ admissions }: HealthReport) => {
  const keys = admissions.takeUsedPlayKeys()
  return keys.length === 0 ? {} : { used_play_keys: keys }
}

/** A 404 or 409 without an error code comes from a proxy, not from the API, and is a failed report. */
export function interpretReply(status: number, body: unknown, intervalSeconds: number): Outcome {
  const { desired, report_in_seconds, epoch, error, admission } = (body ?? {}) as {
    desired?: unknown
    report_in_seconds?: unknown
    epoch?: unknown
    error?: { code?: unknown }
    admission?: unknown
  }
  if (status === 200 && desired === 'stop') return { type: 'ended', reason: 'stopped by the control plane' }
  if (status === 200 && desired === 'run') {
    const requestedSeconds = typeof report_in_seconds === 'number' ? report_in_seconds : intervalSeconds
    const nextSeconds = Math.min(Math.max(requestedSeconds, 0), 300)
    const admitting = readAdmission(admission)
    return {
      type: 'accepted',
      nextSeconds,
      ...(typeof epoch === 'string' ? { epoch } : {}),
      ...(admitting === undefined ? {} : { admission: admitting }),
    }
  }
  const code = typeof error?.code === 'string' ? error.code : undefined
  const reason = `${status} ${code}`
  // Final: nothing is left to do, or another instance does it.
  if (status === 409 && (code === 'invalid_transition' || code === 'relay_replaced')) return { type: 'ended', reason }
  if ((status === 404 || status === 409) && code !== undefined)
    return { type: 'denied', reason, isUnknown: status === 404 }
  return { type: 'failed', reason: `status ${status}${code === undefined ? '' : ` ${code}`}` }
}

/** @returns undefined when the reply assigns no session. */
function readAssignment(body: unknown): Outcome | undefined {
  const { assignment } = body as { assignment?: Record<string, unknown> | null }
  if (!assignment) return undefined
  const { session_id: sessionId, stream_token: streamToken, admission: sent, binding = 1, ports } = assignment
  const admission = readAdmission(sent) ?? (isStreamToken(streamToken) ? admitPlainToken(streamToken) : undefined)
  if (typeof sessionId !== 'string' || !isUuid(sessionId) || admission === undefined) return invalidAssignment
  if (!isPositive(binding, Number.MAX_SAFE_INTEGER)) return invalidAssignment
  return { type: 'assigned', session: { sessionId, admission, binding, ports: readPorts(ports) } }
}

/** Former versions of the control plane send the token itself. */
const isStreamToken = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9]{8}$/.test(value)

const isPositive = (value: unknown, max: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= max

/** Null for ports that cannot be taken, since the relay has others. */
function readPorts(value: unknown): RelayPorts | null {
  const { srtla, publish, play, stats } = (value ?? {}) as Record<string, unknown>
  const ports = { srtlaPort: srtla, publishPort: publish, playPort: play, statsPort: stats }
  return portNames.every((name) => isPositive(ports[name], 65_535)) ? (ports as RelayPorts) : null
}

/** Its values are not part of the reason, since one is a secret. */
const invalidAssignment: Outcome = { type: 'failed', reason: 'the reply has an invalid assignment' }

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
