/**
 * The soft cap on throughput: a token bucket that delays datagrams, so that a sender sees a slower network and reduces
 * its bitrate.
 */

/** A burst of this length passes without delay. */
const burstMillis = 250
/**
 * Above the largest number of unacknowledged packets of an SRT sender with default settings, so only forged traffic
 * reaches it.
 */
const queueLengthMax = 16_384

export class ThroughputCap {
  readonly #bytesPerMilli: number
  readonly #burstBytes: number
  readonly #queue: { readonly bytes: number; readonly deliver: () => void }[] = []
  /** The first entry of the queue that is not delivered. */
  #first = 0
  #tokens: number
  #refilledAt: number
  #timer: NodeJS.Timeout | undefined

  /** @param now the time in milliseconds. */
  constructor(
    mbps: number,
    private readonly now = () => performance.now(),
  ) {
    this.#refilledAt = now()
    this.#bytesPerMilli = (mbps * 1_000_000) / 8 / 1000
    this.#burstBytes = this.#bytesPerMilli * burstMillis
    this.#tokens = this.#burstBytes
  }

  /** Calls `deliver` in the order of the calls, at once while the throughput is below the cap. */
  push(bytes: number, deliver: () => void): void {
    if (this.#length === 0 && this.#take(bytes)) deliver()
    else if (this.#length < queueLengthMax) {
      this.#queue.push({ bytes, deliver })
      this.#timer ??= setTimeout(this.#drain, 1)
    }
  }

  /** Drops what is delayed. */
  close(): void {
    clearTimeout(this.#timer)
    this.#queue.length = 0
    this.#first = 0
  }

  get #length(): number {
    return this.#queue.length - this.#first
  }

  #take(bytes: number): boolean {
    const now = this.now()
    this.#tokens = Math.min(this.#burstBytes, this.#tokens + (now - this.#refilledAt) * this.#bytesPerMilli)
    this.#refilledAt = now
    if (this.#tokens < bytes) return false
    this.#tokens -= bytes
    return true
  }

  readonly #drain = () => {
    this.#timer = undefined
    for (let next = this.#queue[this.#first]; next && this.#take(next.bytes); next = this.#queue[this.#first]) {
      this.#first += 1
      next.deliver()
    }
    if (this.#first === this.#queue.length || this.#first > queueLengthMax / 4) {
      this.#queue.splice(0, this.#first)
      this.#first = 0
    }
    if (this.#length > 0) this.#timer = setTimeout(this.#drain, 1)
  }
}
