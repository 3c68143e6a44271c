/** Summarises what the publisher sends: for health reports, for `/stats` and for scene switchers. Nothing per link. */
import type { RelayEngine } from '../domain/relay/engines.ts'
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import type { LastRefusal } from './refusal-counts.ts'
import type { SrtConnection } from './srt-connection.ts'
import type { Role } from './stream-access.ts'
import { StreamTotals, silenceMillisMax } from './stream-totals.ts'
import { UsualStream } from './usual-stream.ts'

/** The body of a health report's `stats`. */
export interface IngestSummary {
  readonly publishing: boolean
  readonly bitrate_kbps: number
  /** Milliseconds. Absent without a publisher, as the loss. */
  readonly rtt_ms?: number
  /** Packets that were lost on the way, also those that were sent again in time, of the last two seconds. */
  readonly loss_pct?: number
  /** Of the packets that came, those that had been sent before, of the last two seconds. */
  readonly repeat_pct?: number
  /** Network paths of the publisher. */
  readonly links: number
  readonly players: number
  /** Players that are connected and read nothing. */
  readonly stalled_players: number
  /** The most network paths that the publisher had for some seconds, of the last five minutes. */
  readonly usual_links?: number
  /** About that of the publisher's last minute. Absent in its first seconds. */
  readonly usual_bitrate_kbps?: number
  /** Since a caller proved its address at the ports for publishers. Absent when none has. */
  readonly last_call_age_ms?: number
  /** The last refusal of each role since the last caller of that role that was let in. */
  readonly last_refused: Partial<Record<Role, { readonly reason: RelayRefusal; readonly age_ms: number }>>
  /**
   * The totals are those of all publishers since the process started. The average that follows from them is at most the
   * peak.
   */
  readonly bytes_total: number
  /** Milliseconds with data. */
  readonly publishing_ms_total: number
  readonly peak_bitrate_kbps: number
  readonly engine: RelayEngine | 'none'
  /** How many callers were refused since the relay started. A reason without one is absent. */
  readonly refused: Partial<Record<RelayRefusal, number>>
}

const windowMillis = 2_000
/** A shorter window would show the first burst as a bitrate. */
const windowMillisMin = 1_000

interface Sample {
  readonly at: number
  readonly bytes: number
  readonly packets: number
  readonly lost: number
  readonly copies: number
  readonly repeats: number
}

export interface IngestRates {
  readonly bitrateKbps: number
  readonly lossPct: number
  readonly repeatPct: number
}

const noRates: IngestRates = { bitrateKbps: 0, lossPct: 0, repeatPct: 0 }

/** Rates over the last two seconds, and totals over all publishers. To be sampled about twice a second. */
export class IngestMeter {
  readonly totals = new StreamTotals()
  #connection: SrtConnection | undefined
  #samples: Sample[] = []
  #usual = new UsualStream()

  /** Of the present publisher. */
  get usual(): UsualStream {
    return this.#usual
  }

  /** @param connection that of the present publisher. @param links its network paths. */
  sample(connection: SrtConnection | undefined, links: number, now: number): void {
    if (connection !== this.#connection) {
      this.#connection = connection
      this.#samples = []
      this.#usual = new UsualStream()
    }
    if (connection === undefined) return
    const { dataBytes: bytes, dataPackets: packets, copies, repeats, loss } = connection.counters
    this.#samples.push({ at: now, bytes, packets, lost: loss.recovered + loss.dropped, copies, repeats })
    // The oldest sample that is kept marks the beginning of the window.
    while (this.#samples[1] !== undefined && now - this.#samples[1].at >= windowMillis) this.#samples.shift()
    if (this.isPublishing(now)) this.#usual.sample(this.rates(now).bitrateKbps, links, now)
  }

  isPublishing(now: number): boolean {
    const connection = this.#connection
    return connection?.isOpen === true && now - connection.counters.lastDataAt < silenceMillisMax
  }

  rates(now: number): IngestRates {
    const [from] = this.#samples
    if (from === undefined || this.#connection === undefined || !this.isPublishing(now)) return noRates
    const { dataBytes, dataPackets, copies, repeats, loss } = this.#connection.counters
    const millis = Math.max(now - from.at, windowMillisMin)
    const packets = dataPackets - from.packets
    const lost = loss.recovered + loss.dropped - from.lost
    return {
      bitrateKbps: Math.round(((dataBytes - from.bytes) * 8) / millis),
      lossPct: percentOf(lost, packets),
      repeatPct: percentOf(repeats - from.repeats, packets + copies - from.copies),
    }
  }
}

/** With one decimal, at most 100. */
const percentOf = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round(Math.min(part / whole, 1) * 1000) / 10

export interface IngestView {
  readonly meter: IngestMeter
  readonly connection: SrtConnection | undefined
  readonly links: number
  readonly players: number
  readonly stalledPlayers: number
  readonly engine: RelayEngine | 'none'
  readonly refused: IngestSummary['refused']
  readonly lastRefused: Readonly<Partial<Record<Role, LastRefusal>>>
  readonly lastCallAt: number | undefined
  readonly now: number
}

export function summarizeIngest({
  meter,
  connection,
  links,
  players,
  stalledPlayers,
  engine,
  refused,
  lastRefused,
  lastCallAt,
  now,
}: IngestView): IngestSummary {
  const publishing = meter.isPublishing(now)
  const { bitrateKbps, lossPct, repeatPct } = meter.rates(now)
  const rtt = connection?.counters.rttMillis
  const { links: usualLinks, bitrateKbps: usualKbps } = meter.usual
  const ageOf = (at: number) => Math.max(0, Math.round(now - at))
  return {
    publishing,
    bitrate_kbps: bitrateKbps,
    ...(publishing && rtt !== undefined ? { rtt_ms: Math.round(rtt * 10) / 10 } : {}),
    ...(publishing ? { loss_pct: lossPct, repeat_pct: repeatPct } : {}),
    links: publishing ? links : 0,
    players,
    stalled_players: stalledPlayers,
    ...(publishing && usualLinks > 0 ? { usual_links: usualLinks } : {}),
    ...(publishing && usualKbps !== undefined ? { usual_bitrate_kbps: usualKbps } : {}),
    ...(lastCallAt === undefined ? {} : { last_call_age_ms: ageOf(lastCallAt) }),
    last_refused: Object.fromEntries(
      Object.entries(lastRefused).map(([role, last]) => [role, { reason: last.reason, age_ms: ageOf(last.at) }]),
    ),
    bytes_total: meter.totals.bytes,
    // Rounded up, so that the average of what is reported is not above the reported peak either.
    publishing_ms_total: Math.ceil(meter.totals.millis),
    peak_bitrate_kbps: Math.ceil(meter.totals.peakKbps),
    engine,
    refused,
  }
}
