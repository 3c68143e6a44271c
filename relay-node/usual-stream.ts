/** What is usual for the present publisher: its bitrate of the last minute or so, and its links of the last minutes. */

/** After this time two thirds of the usual bitrate follow from what came since. */
const bitrateMemoryMillis = 60_000
/** The bitrate of a stream that has just begun is not usual yet. */
const settlingMillis = 5_000
/** A number of links counts when it has held for so long: a link that changes its port counts twice for a moment. */
const steadyMillis = 5_000
/** A link that is gone for longer is not expected any more. */
const linksMemoryMillis = 300_000

export class UsualStream {
  #beganAt: number | undefined
  #sampledAt = 0
  #bitrateKbps: number | undefined
  #present: { readonly links: number; readonly since: number } | undefined
  /** Steady numbers of links, each with the last time at which it held. */
  #held = new Map<number, number>()

  /** Of a publisher that sends. To be called about twice a second. */
  sample(bitrateKbps: number, links: number, now: number): void {
    this.#beganAt ??= now
    const weight = 1 - Math.exp(-(now - this.#sampledAt) / bitrateMemoryMillis)
    if (this.#bitrateKbps !== undefined) this.#bitrateKbps += (bitrateKbps - this.#bitrateKbps) * weight
    else if (now - this.#beganAt >= settlingMillis) this.#bitrateKbps = bitrateKbps
    this.#sampledAt = now
    if (this.#present?.links !== links) this.#present = { links, since: now }
    if (now - this.#present.since >= steadyMillis) this.#held.set(links, now)
    for (const [held, at] of this.#held) if (now - at > linksMemoryMillis) this.#held.delete(held)
  }

  /** Undefined in the first seconds. */
  get bitrateKbps(): number | undefined {
    return this.#bitrateKbps === undefined ? undefined : Math.round(this.#bitrateKbps)
  }

  /** The most links that held for some seconds in the last minutes; 0 in the first seconds. */
  get links(): number {
    return Math.max(0, ...this.#held.keys())
  }
}
