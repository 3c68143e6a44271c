/** One direction of a network, emulated in this process: delay, jitter, loss and bandwidth. */

export interface PathConditions {
  readonly lossPercent?: number
  readonly delayMillis?: number
  /** The most by which the delay of a datagram differs from {@link delayMillis}. */
  readonly jitterMillis?: number
  /** Datagrams wait for their turn, and are lost where more than {@link queueMillis} wait. Unlimited by default. */
  readonly kbps?: number
  readonly queueMillis?: number
  /** Whether no datagram overtakes another one, as on most networks. True by default. */
  readonly isOrderKept?: boolean
}

const queueMillisDefault = 400

interface Delayed {
  readonly at: number
  readonly deliver: () => void
}

export class EmulatedPath {
  conditions: PathConditions
  /** Everything is lost, also what is under way. */
  isDead = false
  readonly #random: () => number
  readonly #queue: Delayed[] = []
  readonly #unordered = new Set<NodeJS.Timeout>()
  #timer: NodeJS.Timeout | undefined
  #freeAt = 0
  #lastAt = 0

  /** @param random as `Math.random`. */
  constructor(conditions: PathConditions, random: () => number = Math.random) {
    this.conditions = conditions
    this.#random = random
  }

  /** @returns whether the datagram will arrive, unless the path dies meanwhile. */
  pass(bytes: number, deliver: () => void): boolean {
    const { lossPercent = 0, delayMillis = 0, jitterMillis = 0, kbps, isOrderKept = true } = this.conditions
    const { queueMillis = queueMillisDefault } = this.conditions
    if (this.isDead || this.#random() * 100 < lossPercent) return false
    const now = performance.now()
    const leavesAt = Math.max(now, this.#freeAt)
    if (kbps !== undefined) {
      if (leavesAt - now > queueMillis) return false
      this.#freeAt = leavesAt + (bytes * 8) / kbps
    }
    const at = (kbps === undefined ? now : this.#freeAt) + delayMillis + jitterMillis * (2 * this.#random() - 1)
    if (at <= now && this.#queue.length === 0) deliver()
    else if (isOrderKept) this.#push({ at: Math.max(at, this.#lastAt), deliver })
    else this.#deliverLater(at - now, deliver)
    return true
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const timer of this.#unordered) clearTimeout(timer)
    this.#queue.length = 0
  }

  #push(delayed: Delayed): void {
    this.#lastAt = delayed.at
    this.#queue.push(delayed)
    this.#timer ??= setTimeout(this.#drain, delayed.at - performance.now())
  }

  readonly #drain = () => {
    this.#timer = undefined
    // Timers are a millisecond apart.
    const until = performance.now() + 0.5
    for (let next = this.#queue[0]; next !== undefined && next.at <= until; next = this.#queue[0]) {
      this.#queue.shift()
      if (!this.isDead) next.deliver()
    }
    const [next] = this.#queue
    if (next !== undefined) this.#timer = setTimeout(this.#drain, next.at - performance.now())
  }

  #deliverLater(millis: number, deliver: () => void): void {
    const timer = setTimeout(() => {
      this.#unordered.delete(timer)
      if (!this.isDead) deliver()
    }, millis)
    this.#unordered.add(timer)
  }
}
