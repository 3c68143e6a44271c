/** What one relay process has received from all of its publishers: bytes, the time with data, and the peak bitrate. */

/** A publisher without data for longer does not publish. */
export const silenceMillisMax = 3_000
/** The shortest time over which a bitrate is one. */
const pieceMillisMin = 1_000

interface Piece {
  bytes: number
  millis: number
}

const kbpsOf = ({ bytes, millis }: Readonly<Piece>): number => (bytes * 8) / millis

/**
 * Data packets without a gap of more than three seconds are a run, also empty ones. The time is that of all runs, of
 * each from its first packet to its last one, or a second if it is shorter.
 *
 * A run is divided into pieces. Each ends with the first packet that arrives a second or more after its beginning; the
 * rest of the run, which is shorter, belongs to the last of them, and the whole of a run of less than a second is one
 * piece of a second. The peak is the highest bitrate of a piece, also of one before the rest was added to it.
 *
 * So the average is never above the peak, at any time: each byte belongs to one piece, and the durations `d` of the
 * pieces add up to the time, hence `sum(b) = sum(b/d * d) <= max(b/d) * sum(d)`. For the same reason the sums over
 * several processes have no average above the highest of their peaks.
 */
export class StreamTotals {
  bytes = 0
  /** Of all pieces that do not change any more. */
  #pieceMillis = 0
  #peakKbps = 0
  /** When the last data packet came. */
  lastAt = Number.NEGATIVE_INFINITY
  /** The last complete piece of the present run, and what came in after it. */
  #last: Piece = { bytes: 0, millis: 0 }
  #rest: Piece = { bytes: 0, millis: 0 }

  /** Counts a data packet. @param now milliseconds of a clock that never goes back. */
  receive(bytes: number, now: number): void {
    const gap = now - this.lastAt
    if (gap > silenceMillisMax) this.#endRun()
    else this.#rest.millis += gap
    this.lastAt = now
    this.bytes += bytes
    this.#rest.bytes += bytes
    if (this.#rest.millis >= pieceMillisMin) this.#endPiece()
  }

  /** The time with data, in milliseconds. */
  get millis(): number {
    return this.#pieceMillis + this.#present.millis
  }

  get peakKbps(): number {
    const present = this.#present
    return present.bytes === 0 ? this.#peakKbps : Math.max(this.#peakKbps, kbpsOf(present))
  }

  /** The piece that the present run would end with, also if all of its packets were empty. */
  get #present(): Piece {
    const bytes = this.#last.bytes + this.#rest.bytes
    const millis = this.#last.millis + this.#rest.millis
    const hasBegun = this.lastAt !== Number.NEGATIVE_INFINITY
    return { bytes, millis: hasBegun ? Math.max(millis, pieceMillisMin) : 0 }
  }

  #endPiece(): void {
    this.#pieceMillis += this.#last.millis
    this.#last = this.#rest
    this.#rest = { bytes: 0, millis: 0 }
    this.#peakKbps = Math.max(this.#peakKbps, kbpsOf(this.#last))
  }

  #endRun(): void {
    this.#peakKbps = this.peakKbps
    this.#pieceMillis = this.millis
    this.#last = { bytes: 0, millis: 0 }
    this.#rest = { bytes: 0, millis: 0 }
  }
}
