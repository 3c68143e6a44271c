/**
 * The stream record of a session: one point for each slot of 10 s, from its first report to its end. A point is packed
 * into 56 bits, so that an evening of 16 hours takes less than 60 KB. Migration 0057 has the same layout in SQL.
 */
import { type IngestSummary, slotSeconds } from './ingest.ts'

/** What the reports of a slot state. */
export interface StreamPoint {
  /** The highest bitrate; 0 while nothing is published. */
  readonly bitrateKbps: number
  /** The fewest links that carried a stream; 0 without any. */
  readonly links: number
  /** The greatest loss, in tenths of a percent; null when it is not stated, or nothing is published. */
  readonly lossTenths: number | null
  /** The longest round trip; null like the loss. */
  readonly rttMs: number | null
  /** At the end of the slot. */
  readonly players: number
}

export interface TimedPoint extends StreamPoint {
  /** The beginning of the slot, in seconds since 1970. */
  readonly at: number
}

const linksMax = 63
const playersMax = 63
const rttMsMax = 16_382
const pointBytes = 7

/** The point of one report. Numbers that do not fit count as the largest ones that do. */
export const toPoint = ({ isPublishing, bitrateKbps, links, players, lossPct, rttMs }: IngestSummary): StreamPoint => ({
  bitrateKbps,
  links: isPublishing ? Math.min(links, linksMax) : 0,
  lossTenths: isPublishing && lossPct !== null ? Math.round(lossPct * 10) : null,
  rttMs: isPublishing && rttMs !== null ? Math.min(Math.round(rttMs), rttMsMax) : null,
  players: Math.min(players, playersMax),
})

/** The point of a slot, of one that was reported earlier in it and one that was reported later. */
export const mergePoints = (earlier: StreamPoint, later: StreamPoint): StreamPoint => ({
  bitrateKbps: Math.max(earlier.bitrateKbps, later.bitrateKbps),
  links: Math.min(earlier.links || later.links, later.links || earlier.links),
  lossTenths: greater(earlier.lossTenths, later.lossTenths),
  rttMs: greater(earlier.rttMs, later.rttMs),
  players: later.players,
})

const greater = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b)

/** The number in decimal digits, since it has more bits than a number of JSON. It is never 0. */
export function packPoint({ bitrateKbps, links, players, lossTenths, rttMs }: StreamPoint): string {
  const high = BigInt(bitrateKbps + 1) * 4096n + BigInt(links * 64 + players)
  const low = (lossTenths === null ? 0 : lossTenths + 1) * 16_384 + (rttMs === null ? 0 : rttMs + 1)
  return String(high * 16_777_216n + BigInt(low))
}

/**
 * The points of consecutive slots, oldest first. A slot without a report has none.
 * @param beganAt the beginning of the first slot, in seconds since 1970.
 */
export function unpackPoints(beganAt: number, packed: Uint8Array): TimedPoint[] {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength)
  const points: TimedPoint[] = []
  for (let slot = 0; (slot + 1) * pointBytes <= packed.byteLength; slot += 1) {
    const high = view.getUint32(slot * pointBytes)
    if (high === 0) continue
    const low = view.getUint8(slot * pointBytes + 4) * 65_536 + view.getUint16(slot * pointBytes + 5)
    points.push({ at: beganAt + slot * slotSeconds, ...unpack(high, low) })
  }
  return points
}

function unpack(high: number, low: number): StreamPoint {
  const [loss, rtt] = [Math.floor(low / 16_384), low % 16_384]
  return {
    bitrateKbps: Math.floor(high / 4096) - 1,
    links: Math.floor(high / 64) % 64,
    players: high % 64,
    lossTenths: loss === 0 ? null : loss - 1,
    rttMs: rtt === 0 ? null : rtt - 1,
  }
}

/** The points of all parts of a record, which are in their order. Two parts may share a slot. */
export function joinPoints(parts: readonly (readonly TimedPoint[])[]): TimedPoint[] {
  const joined: TimedPoint[] = []
  for (const point of parts.flat()) {
    const last = joined.at(-1)
    if (last?.at === point.at) joined[joined.length - 1] = { at: point.at, ...mergePoints(last, point) }
    else joined.push(point)
  }
  return joined
}
