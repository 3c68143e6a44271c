/**
 * The stream events of a session: what its relays report becomes one history, in which each event of a relay counts
 * once. Relays repeat events until a report with them was accepted, and each report ends with the latest event. Where
 * that differs from the history, such as after an outage of the way to the relay, the history follows.
 */
import type { Millis } from '../millis.ts'
import { endMillis, type StreamEventKind, streamStateAfter } from './stream-events.ts'

/** The oldest events of a session that has more are deleted. */
export const streamEventsMax = 1_000
/** The most events of a report. */
export const reportedEventsMax = 100

export interface ReportedStreamEvent {
  /** The number of the event in the process of the relay, from 1 on. */
  readonly seq: number
  readonly kind: StreamEventKind
  readonly ageMillis: number
  readonly bitrateKbps: number
}

/** The event of a relay up to which a stored one says what happened. */
export interface StreamEventSource {
  readonly instanceId: string
  readonly processStartedAtMs: number
  readonly seq: number
}

export interface StreamHistory {
  readonly lastKind: StreamEventKind
  readonly lastAt: Millis
  /** The latest one of the stored events. */
  readonly source: StreamEventSource | null
}

export interface StreamReport {
  readonly instanceId: string
  readonly processStartedAtMs: number
  readonly events: readonly ReportedStreamEvent[]
  readonly bitrateKbps: number
}

export interface NewStreamEvent {
  readonly kind: StreamEventKind
  readonly at: Millis
  readonly bitrateKbps: number
  /** Null for an event that no relay has reported. */
  readonly source: StreamEventSource | null
}

export interface StreamHistoryChange {
  readonly added: readonly NewStreamEvent[]
  /** The new source of the last event before them, which says what the relay reports. Null without a new one. */
  readonly adopted: StreamEventSource | null
}

const noChange: StreamHistoryChange = { added: [], adopted: null }

/**
 * What a report of the session's instance changes. Times are of one clock.
 * @param history undefined without an event.
 */
export function followReport(
  history: StreamHistory | undefined,
  report: StreamReport,
  now: Millis,
): StreamHistoryChange {
  const events = report.events.toSorted((a, b) => a.seq - b.seq).slice(-reportedEventsMax)
  const last = events.at(-1)
  const seen = seqSeen(history?.source ?? null, report)
  if ((last?.seq ?? 0) < seen) return noChange
  const change = addReported(history, report, events, seen, now)
  const present = change.added.at(-1) ?? (history && { kind: history.lastKind, at: history.lastAt })
  const kind = present && kindOfDifference(present, last?.kind, now)
  if (kind === undefined) return change
  const bitrateKbps = streamStateAfter(kind) === 'good' || kind === 'stream_weak' ? report.bitrateKbps : 0
  return { ...change, added: [...change.added, { kind, at: now, bitrateKbps, source: null }] }
}

/** The number of the last event of the process that is stored; infinite for a process that another one has replaced. */
function seqSeen(source: StreamEventSource | null, { instanceId, processStartedAtMs }: StreamReport): number {
  if (source === null || source.instanceId !== instanceId || source.processStartedAtMs < processStartedAtMs) return 0
  return source.processStartedAtMs > processStartedAtMs ? Number.POSITIVE_INFINITY : source.seq
}

function addReported(
  history: StreamHistory | undefined,
  { instanceId, processStartedAtMs }: StreamReport,
  events: readonly ReportedStreamEvent[],
  seen: number,
  now: Millis,
): StreamHistoryChange {
  const added: NewStreamEvent[] = []
  let adopted: StreamEventSource | null = null
  let [lastKind, lastAt] = [history?.lastKind, history?.lastAt ?? Number.NEGATIVE_INFINITY]
  for (const { seq, kind, ageMillis, bitrateKbps } of events.filter((event) => event.seq > seen)) {
    const source = { instanceId, processStartedAtMs, seq }
    const storedKind = kindAfter(lastKind, kind)
    const lastAdded = added.at(-1)
    if (storedKind !== undefined) {
      // The history of another process, or of the service itself, may be ahead.
      lastAt = Math.max(now - ageMillis, lastAt)
      lastKind = storedKind
      added.push({ kind: storedKind, at: lastAt, bitrateKbps, source })
    } else if (lastAdded) added[added.length - 1] = { ...lastAdded, source }
    else if (history) adopted = source
  }
  return { added, adopted }
}

/**
 * The kind that is stored for a reported one; undefined when it changes nothing. To the viewer a stream goes on over
 * the relays of its session.
 */
function kindAfter(last: StreamEventKind | undefined, kind: StreamEventKind): StreamEventKind | undefined {
  if (streamStateAfter(last) === 'none') {
    if (kind === 'stream_weak') return kind
    return streamStateAfter(kind) === 'good' ? 'stream_started' : undefined
  }
  const stored = kind === 'stream_started' ? 'stream_recovered' : kind
  return stored === last ? undefined : stored
}

/** The kind of the event that leads from the last stored one to the present state of the relay. */
function kindOfDifference(
  { kind: last, at }: Pick<NewStreamEvent, 'kind' | 'at'>,
  reported: StreamEventKind | undefined,
  now: Millis,
): StreamEventKind | undefined {
  const [stored, present] = [streamStateAfter(last), streamStateAfter(reported)]
  if (stored === present || stored === 'none') return undefined
  if (present === 'good') return 'stream_recovered'
  if (present !== 'none') return reported
  if (reported === 'stream_ended') return reported
  // A new process has no stream yet. The encoder may come back to it.
  if (stored !== 'lost') return 'stream_lost'
  return now - at >= endMillis ? 'stream_ended' : undefined
}
