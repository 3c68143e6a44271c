/** Summarises what the publisher sends: for health reports, for `/stats` and for scene switchers. Nothing per link. */
import type { RelayEngine } from '../platform/relay-engines.ts'
import type { RelayRefusal } from '../platform/relay-refusals.ts'
import type { SrtConnection } from './srt-connection.ts'

/** The body of a health report's `stats`. */
export interface IngestSummary {
  readonly publishing: boolean
  readonly bitrate_kbps: number
  /** Milliseconds. Absent without a publisher, as the loss. */
  readonly rtt_ms?: number
  /** Packets that were lost on the way, also those that were sent again in time, of the last two seconds. */
  readonly loss_pct?: number
  /** Network paths of the publisher. */
  readonly links: number
  readonly players: number
  /** Of all publishers since the relay started. */
  readonly bytes_total: number
  readonly engine: RelayEngine | 'none'
  /** How many callers were refused since the relay started. A reason without one is absent. */
  readonly refused: Partial<Record<RelayRefusal, number>>
}

/** A connection without data for longer does not publish. */
const silenceMillisMax = 3_000
const windowMillis = 2_000

interface Sample {
  readonly at: number
  readonly bytes: number
  readonly packets: number
  readonly lost: number
}

export interface IngestRates {
  readonly bitrateKbps: number
  readonly lossPct: number
}

const noRates: IngestRates = { bitrateKbps: 0, lossPct: 0 }

/** Rates over the last two seconds, and bytes over all publishers. To be sampled about twice a second. */
export class IngestMeter {
  #connection: SrtConnection | undefined
  #samples: Sample[] = []
  #bytesOfEarlier = 0

  /** @param connection that of the present publisher. */
  sample(connection: SrtConnection | undefined, now: number): void {
    if (connection !== this.#connection) {
      this.#bytesOfEarlier += this.#connection?.counters.dataBytes ?? 0
      this.#connection = connection
      this.#samples = []
    }
    if (connection === undefined) return
    const { dataBytes: bytes, dataPackets: packets, loss } = connection.counters
    this.#samples.push({ at: now, bytes, packets, lost: loss.recovered + loss.dropped })
    // The oldest sample that is kept marks the beginning of the window.
    while (this.#samples[1] !== undefined && now - this.#samples[1].at >= windowMillis) this.#samples.shift()
  }

  get bytesTotal(): number {
    return this.#bytesOfEarlier + (this.#connection?.counters.dataBytes ?? 0)
  }

  isPublishing(now: number): boolean {
    const connection = this.#connection
    return connection?.isOpen === true && now - connection.counters.lastDataAt < silenceMillisMax
  }

  rates(now: number): IngestRates {
    const [from] = this.#samples
    if (from === undefined || this.#connection === undefined || !this.isPublishing(now)) return noRates
    const { dataBytes, dataPackets, loss } = this.#connection.counters
    // Less than half a second would show the first burst as a bitrate.
    const millis = Math.max(now - from.at, 500)
    const packets = dataPackets - from.packets
    const lost = loss.recovered + loss.dropped - from.lost
    return {
      bitrateKbps: Math.round(((dataBytes - from.bytes) * 8) / millis),
      lossPct: packets === 0 ? 0 : Math.round(Math.min(lost / packets, 1) * 1000) / 10,
    }
  }
}

export interface IngestView {
  readonly meter: IngestMeter
  readonly connection: SrtConnection | undefined
  readonly links: number
  readonly players: number
  readonly engine: RelayEngine | 'none'
  readonly refused: IngestSummary['refused']
  readonly now: number
}

export function summarizeIngest({
  meter,
  connection,
  links,
  players,
  engine,
  refused,
  now,
}: IngestView): IngestSummary {
  const publishing = meter.isPublishing(now)
  const { bitrateKbps, lossPct } = meter.rates(now)
  const rtt = connection?.counters.rttMillis
  return {
    publishing,
    bitrate_kbps: bitrateKbps,
    ...(publishing && rtt !== undefined ? { rtt_ms: Math.round(rtt * 10) / 10 } : {}),
    ...(publishing ? { loss_pct: lossPct } : {}),
    links: publishing ? links : 0,
    players,
    bytes_total: meter.bytesTotal,
    engine,
    refused,
  }
}
