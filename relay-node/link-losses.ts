/**
 * Estimates over which link lost packets were sent. A packet that is repeated arrives over any link, and only the
 * encoder knows over which one it was sent first. But encoders take turns with their links, so the links of the packets
 * before and after it say which one is likely: the estimate is the one under which what arrived is most probable, by
 * expectation and maximization.
 */
import { advance, distanceBetween, jumpMax, rememberedMax } from './sequence-numbers.ts'

/** Places are numbers from 0 on, so that tables stay small. */
export const placesMax = 16
const none = 0xff
const roundsMax = 30
/** Counts are halved after so many packets, so that they follow the network. */
const halvedAfter = 3_000
/** Before so many packets little is known. */
const settledMin = 500
const millisPerEstimate = 1_000
/** A packet may arrive although its repeat has come before. */
const settledAfterMillis = 1_000

/** What came between a packet of one place and a packet of another. */
interface Between {
  /** By place: the packets that arrived. */
  readonly arrived: Float64Array
  lost: number
}

export class LinkLosses {
  /** By the low bits of a sequence number: the place over which the packet arrived, if not by a repeat. */
  readonly #placeOf = new Uint8Array(rememberedMax).fill(none)
  /** By the places before and after. */
  readonly #between = new Map<number, Between>()
  #next: number | undefined
  /** In the order of their arrival. */
  readonly #acknowledgements: { readonly next: number; readonly at: number }[] = []
  #settled = 0
  #isKnown = false
  #estimate: readonly number[] = []
  #estimatedAt = Number.NEGATIVE_INFINITY

  /** A packet arrived over a place: the first of its copies, or the original after a repeat. */
  receive(sequenceNumber: number, place: number, isRepeat: boolean): void {
    this.#placeOf[sequenceNumber % rememberedMax] = isRepeat ? none : place
    this.#next ??= sequenceNumber
  }

  /** @param next the number after the last packet that the engine has received or given up. */
  acknowledge(next: number, now: number): void {
    this.#acknowledgements.push({ next, at: now })
    while (now - (this.#acknowledgements[0]?.at ?? now) >= settledAfterMillis) {
      const oldest = this.#acknowledgements.shift()
      if (oldest) this.#settleUpTo(oldest.next)
    }
  }

  /** The part of the packets of a place that was lost, from 0 to 1; undefined while too little is known. */
  lossOf(place: number, now: number): number | undefined {
    if (!this.#isKnown) return undefined
    if (now - this.#estimatedAt >= millisPerEstimate) {
      this.#estimate = this.#estimateAll()
      this.#estimatedAt = now
    }
    return this.#estimate[place]
  }

  #estimateAll(): number[] {
    const arrived = new Float64Array(placesMax)
    for (const between of this.#between.values()) addTo(arrived, between.arrived, 1)
    let rates = Array.from(arrived, () => 0.01)
    for (let round = 0; round < roundsMax; round += 1) {
      const lost = new Float64Array(placesMax)
      for (const between of this.#between.values()) {
        if (between.lost === 0) continue
        // Of each place: the packets that must have been lost, by those that arrived.
        const weights = between.arrived.map((count, place) => (count * (rates[place] ?? 0)) / (1 - (rates[place] ?? 0)))
        const sum = weights.reduce((a, b) => a + b, 0)
        if (sum > 0) addTo(lost, weights, between.lost / sum)
      }
      rates = Array.from(lost, (count, place) => Math.min(count / (count + (arrived[place] ?? 0) || 1), 0.95))
    }
    return rates
  }

  #settleUpTo(end: number): void {
    if (this.#next === undefined) return
    // The last one waits for the packet after it.
    const distance = distanceBetween(this.#next, end) - 1
    if (distance < 0) return
    if (distance <= jumpMax)
      for (let offset = 0; offset < distance; offset += 1) this.#settle(advance(this.#next, offset))
    this.#next = advance(end, -1)
  }

  #settle(number: number): void {
    const before = this.#placeAt(number, -1)
    const after = this.#placeAt(number, 1)
    if (before === none || after === none) return
    const pair = before * placesMax + after
    const between = this.#between.get(pair) ?? { arrived: new Float64Array(placesMax), lost: 0 }
    this.#between.set(pair, between)
    const place = this.#placeAt(number, 0)
    if (place === none) between.lost += 1
    else between.arrived[place] = (between.arrived[place] ?? 0) + 1
    this.#settled += 1
    this.#isKnown ||= this.#settled >= settledMin
    if (this.#settled >= halvedAfter) this.#halve()
  }

  #placeAt(number: number, offset: number): number {
    return this.#placeOf[advance(number, offset) % rememberedMax] ?? none
  }

  #halve(): void {
    this.#settled = 0
    for (const between of this.#between.values()) {
      between.lost /= 2
      for (const [place, count] of between.arrived.entries()) between.arrived[place] = count / 2
    }
  }
}

function addTo(sums: Float64Array, values: Float64Array, factor: number): void {
  for (const [index, value] of values.entries()) sums[index] = (sums[index] ?? 0) + value * factor
}
