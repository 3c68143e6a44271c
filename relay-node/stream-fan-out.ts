/**
 * Copies a stream to all players. A player that does not keep up is closed, so it does not slow down the others. The
 * engine delivers the end of a stream late, also after its publisher has vanished. So a player receives the stream of a
 * publisher only when data of it has arrived since the player was added.
 */
import type { Writable } from 'node:stream'

/** Seven packets of MPEG-TS, the usual payload of an SRT packet. Players expect packets that are not split. */
const blockBytes = 1316

export interface Player {
  readonly input: Writable
  /** Called when the player has too much unsent data. */
  readonly onTooSlow: () => void
}

interface Place {
  /** Grows with each player. */
  readonly number: number
  hasData: boolean
}

export class StreamFanOut {
  readonly #players = new Map<Player, Place>()
  readonly #pendingBytesMax: number
  #added = 0
  /** The beginning of a block whose rest has not arrived. */
  #partial: Buffer = Buffer.alloc(0)

  constructor({ pendingBytesMax = 8 * 1024 * 1024 }: { readonly pendingBytesMax?: number } = {}) {
    this.#pendingBytesMax = pendingBytesMax
  }

  /** The player receives the stream from the next block on. */
  add(player: Player): void {
    this.#added += 1
    this.#players.set(player, { number: this.#added, hasData: false })
  }

  remove(player: Player): void {
    this.#players.delete(player)
  }

  /** The number of the latest player. */
  get newest(): number {
    return this.#added
  }

  /** Sends whole blocks. @param newest the number of the latest player that begins with these data. */
  write(chunk: Buffer, newest = this.#added): void {
    const data = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk])
    const wholeBytes = data.length - (data.length % blockBytes)
    this.#partial = data.subarray(wholeBytes)
    if (wholeBytes > 0) this.#send(data.subarray(0, wholeBytes), newest)
  }

  /** The stream has ended: sends the rest of it. */
  flush(newest = this.#added): void {
    if (this.#partial.length > 0) this.#send(this.#partial, newest)
    this.#partial = Buffer.alloc(0)
  }

  #send(blocks: Buffer, newest: number): void {
    for (const [player, place] of this.#players) {
      // A player that has begun gets all that follows, so that its stream has no hole.
      if (!place.hasData && place.number > newest) continue
      place.hasData = true
      if (player.input.writableLength > this.#pendingBytesMax) {
        this.#players.delete(player)
        player.onTooSlow()
      } else player.input.write(blocks)
    }
  }
}
