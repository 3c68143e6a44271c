/** Copies the stream of the publisher to all players. A player that does not keep up is closed, so it does not slow down the others. */
import type { Writable } from 'node:stream'

/** Seven packets of MPEG-TS, the usual payload of an SRT packet. Players expect packets that are not split. */
const blockBytes = 1316

export interface Player {
  readonly input: Writable
  /** Called when the player has too much unsent data. */
  readonly onTooSlow: () => void
}

export class StreamFanOut {
  readonly #players = new Set<Player>()
  readonly #pendingBytesMax: number
  /** The beginning of a block whose rest has not arrived. */
  #partial: Buffer = Buffer.alloc(0)

  constructor({ pendingBytesMax = 8 * 1024 * 1024 }: { readonly pendingBytesMax?: number } = {}) {
    this.#pendingBytesMax = pendingBytesMax
  }

  /** The player receives the stream from the next block on. */
  add(player: Player): void {
    this.#players.add(player)
  }

  remove(player: Player): void {
    this.#players.delete(player)
  }

  write(chunk: Buffer): void {
    const data = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk])
    const wholeBytes = data.length - (data.length % blockBytes)
    this.#partial = data.subarray(wholeBytes)
    if (wholeBytes > 0) this.#send(data.subarray(0, wholeBytes))
  }

  /** The publisher is gone. The next one begins with a new block. */
  flush(): void {
    if (this.#partial.length > 0) this.#send(this.#partial)
    this.#partial = Buffer.alloc(0)
  }

  #send(blocks: Buffer): void {
    for (const player of this.#players) {
      if (player.input.writableLength > this.#pendingBytesMax) {
        this.#players.delete(player)
        player.onTooSlow()
      } else player.input.write(blocks)
    }
  }
}
