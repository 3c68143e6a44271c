/**
 * Limits a rate by one number: the time from which on nothing counts as taken any more (the generic cell rate
 * algorithm).
 */
export class RateLimit {
  readonly #intervalMillis: number
  readonly #aheadMillisMax: number
  readonly #random: () => number
  #restoredAt = Number.NEGATIVE_INFINITY

  /**
   * @param burst how many can be taken at once after a pause.
   * @param random from 0 to 1, varies the times around the rate.
   */
  constructor(perSecond: number, burst: number, random = () => 0.5) {
    this.#random = random
    this.#intervalMillis = 1000 / perSecond
    this.#aheadMillisMax = (burst - 1) * this.#intervalMillis
  }

  /** @param now milliseconds of a clock that never goes back. */
  take(now: number): boolean {
    const from = Math.max(this.#restoredAt, now)
    if (from - now > this.#aheadMillisMax) return false
    this.#restoredAt = from + this.#intervalMillis * (0.5 + this.#random())
    return true
  }
}
