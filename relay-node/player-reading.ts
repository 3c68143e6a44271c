/**
 * Whether a player reads what it receives. Its acknowledgements state how much room its receive buffer has: of a
 * program that does not read, it shrinks by each packet that arrives. A program that has stopped sends none.
 */

/** The time over which the buffer is looked at. */
const windowMillis = 3_000
/** With fewer packets in the window nothing can be said. */
const packetsMin = 30
/** A player that leaves this part of the packets of the window unread does not read. */
const unreadPartMin = 0.8
/** A buffer with less room is full: its owner has stopped reading long ago. */
const roomPacketsMin = 64
/** Acknowledgements come a hundred times a second. */
const sampleMillis = 250
/** A player that says nothing at all for so long has stopped. It sends keepalives every second. */
const silenceMillisMax = 2_200

interface Sample {
  readonly at: number
  readonly next: number
  readonly room: number
}

export class PlayerReading {
  #samples: Sample[] = []
  readonly #openedAt: number

  constructor(openedAt: number) {
    this.#openedAt = openedAt
  }

  /** @param room packets that the receive buffer of the player still takes. @param next as in the acknowledgement. */
  acknowledge(next: number, room: number | undefined, now: number): void {
    const last = this.#samples.at(-1)
    if (room === undefined || (last !== undefined && now - last.at < sampleMillis)) return
    this.#samples.push({ at: now, next, room })
    while (this.#samples[1] !== undefined && now - this.#samples[1].at >= windowMillis) this.#samples.shift()
  }

  /**
   * @param latencyMillis how long the player keeps packets before it may read them. At first its buffer fills for so
   *   long.
   * @param lastAt when anything came from the player.
   */
  isStalled(latencyMillis: number, lastAt: number, now: number): boolean {
    if (now - lastAt > silenceMillisMax) return true
    const [first] = this.#samples
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || now - last.at > windowMillis) return false
    if (last.room < roomPacketsMin) return true
    if (last.at - first.at < windowMillis || first.at - this.#openedAt < latencyMillis) return false
    // Sequence numbers begin again after 2^31.
    const packets = (last.next - first.next) & 0x7fff_ffff
    return packets >= packetsMin && first.room - last.room >= packets * unreadPartMin
  }
}
