/** Limits a rate by one number: the time from which on nothing counts as taken any more (the generic cell rate algorithm). */
export class RateLimit {
  readonly #intervalMillis: number
  readonly #aheadMillisMax: number
  #restoredAt = Number.NEGATIVE_INFINITY

  /** @param burst how many can be taken at once after a pause. */
  constructor(perSecond: number, burst: number) {
    this.#intervalMillis = 1000 / perSecond
    this.#aheadMillisMax = (burst - 1) * this.#intervalMillis
  }

  /** @param now milliseconds of a clock that never goes back. */
  take(now: number): boolean {
    const from = Math.max(this.#restoredAt, now)
    if (from - now > this.#aheadMillisMax) return false
    this.#restoredAt = from + this.#intervalMillis
    return true
  }
}
