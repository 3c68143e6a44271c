/**
 * Copies the stream of the publisher to all players. A player that does not keep up is closed, so it does not slow down
 * the others. The engine delivers the end of a stream late, also after its publisher has vanished. So a player receives
 * the stream of a publisher only when data of it has arrived since the player was added.
 */
import type { Writable } from 'node:stream'

/** Seven packets of MPEG-TS, the usual payload of an SRT packet. Players expect packets that are not split. */
const blockBytes = 1316

export interface Player {
  readonly input: Writable
  /** Called when the player has too much unsent data. */
  readonly onTooSlow: () => void
}

/** The stream of one publisher. */
export interface Publication {
  /** Data has arrived, which the engine delivers after its latency. The present players are those of the stream. */
  received(): void
  /** The engine delivers data. */
  write(chunk: Buffer): void
  /** The engine has delivered all data. */
  end(): void
}

export class StreamFanOut {
  /** With the number of each, which grows. */
  readonly #players = new Map<Player, number>()
  readonly #pendingBytesMax: number
  #added = 0

  constructor({ pendingBytesMax = 8 * 1024 * 1024 }: { readonly pendingBytesMax?: number } = {}) {
    this.#pendingBytesMax = pendingBytesMax
  }

  /** The player receives the stream from the next block on. */
  add(player: Player): void {
    this.#added += 1
    this.#players.set(player, this.#added)
  }

  remove(player: Player): void {
    this.#players.delete(player)
  }

  publish(): Publication {
    /** The beginning of a block whose rest has not arrived. */
    let partial: Buffer = Buffer.alloc(0)
    /** The number of the latest player of the stream. */
    let latest = this.#added
    return {
      received: () => {
        latest = this.#added
      },
      write: (chunk) => {
        const data = partial.length === 0 ? chunk : Buffer.concat([partial, chunk])
        const wholeBytes = data.length - (data.length % blockBytes)
        partial = data.subarray(wholeBytes)
        if (wholeBytes > 0) this.#send(data.subarray(0, wholeBytes), latest)
      },
      end: () => {
        if (partial.length > 0) this.#send(partial, latest)
        partial = Buffer.alloc(0)
      },
    }
  }

  #send(blocks: Buffer, latest: number): void {
    for (const [player, number] of this.#players) {
      if (number > latest) continue
      if (player.input.writableLength > this.#pendingBytesMax) {
        this.#players.delete(player)
        player.onTooSlow()
      } else player.input.write(blocks)
    }
  }
}
