/** Judges the stream of this process, and keeps its events until the control plane has accepted a report with them. */
import { EventEmitter, once } from 'node:events'
import {
  bitrateMillis,
  isEndOfStream,
  judgeSample,
  type StreamEventKind,
  unjudgedStream,
} from '../domain/relay/stream-events.ts'
import type { StreamTotals } from './stream-totals.ts'

/** Older ones are given up, as in an outage that lasts for hours. */
const keptMax = 100

/** An event as reports state it. */
export interface ReportedEvent {
  readonly seq: number
  readonly kind: StreamEventKind
  readonly age_ms: number
  readonly bitrate_kbps: number
}

interface KeptEvent {
  readonly seq: number
  readonly kind: StreamEventKind
  readonly at: number
  readonly bitrateKbps: number
}

interface Sample {
  readonly at: number
  readonly bytes: number
}

/** Times are in milliseconds of a clock that never goes back. */
export class StreamEvents {
  readonly #weakKbps: number
  readonly #changes = new EventEmitter()
  #judged = unjudgedStream
  #samples: Sample[] = []
  #kept: KeptEvent[] = []
  #lastSeq = 0
  #acceptedSeq = 0

  /** @param weakKbps the limit below which a stream is weak. */
  constructor(weakKbps: number) {
    this.#weakKbps = weakKbps
  }

  /** To be called four times a second. */
  sample({ bytes, lastAt }: Pick<StreamTotals, 'bytes' | 'lastAt'>, now: number): void {
    const bitrateKbps = this.#measure({ at: now, bytes })
    const { judged, kind } = judgeSample(this.#judged, { at: now, lastDataAt: lastAt, bitrateKbps }, this.#weakKbps)
    this.#judged = judged
    if (kind !== undefined) this.#add(kind, bitrateKbps, now)
  }

  /** The relay ends, and with it a stream that has started. */
  end(now: number): void {
    if (!isEndOfStream(this.#judged)) return
    this.#judged = { ...this.#judged, lastKind: 'stream_ended', lastEventAt: now }
    this.#add('stream_ended', 0, now)
  }

  /** The events that were not accepted yet, and in any case the last one, which says what the stream is. */
  list(now: number): ReportedEvent[] {
    return this.#kept.map(({ seq, kind, at, bitrateKbps }) => ({
      seq,
      kind,
      age_ms: Math.max(0, Math.round(now - at)),
      bitrate_kbps: bitrateKbps,
    }))
  }

  /** A report with the events up to this one was accepted. */
  accept(seq: number): void {
    this.#acceptedSeq = Math.max(this.#acceptedSeq, seq)
    this.#kept = this.#kept.filter((event) => event.seq > this.#acceptedSeq || event.seq === this.#lastSeq)
  }

  /** Resolves when there is an event that was not accepted, or once the signal is aborted. */
  async untilPending(signal: AbortSignal): Promise<void> {
    while (this.#lastSeq <= this.#acceptedSeq && !signal.aborted)
      await once(this.#changes, 'event', { signal }).catch(() => {})
  }

  #add(kind: StreamEventKind, bitrateKbps: number, at: number): void {
    this.#lastSeq += 1
    const unaccepted = this.#kept.filter(({ seq }) => seq > this.#acceptedSeq)
    this.#kept = [...unaccepted, { seq: this.#lastSeq, kind, at, bitrateKbps }].slice(-keptMax)
    this.#changes.emit('event')
  }

  /** The bitrate over the last second, or a little more, as samples come. */
  #measure(sample: Sample): number {
    this.#samples.push(sample)
    while (this.#samples[1] !== undefined && sample.at - this.#samples[1].at >= bitrateMillis) this.#samples.shift()
    const [from = sample] = this.#samples
    return Math.round(((sample.bytes - from.bytes) * 8) / Math.max(sample.at - from.at, bitrateMillis))
  }
}
