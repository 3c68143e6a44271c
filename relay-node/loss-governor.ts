/**
 * Decides when a bonded encoder hears that packets are lost. An SRT engine takes each packet of a slow link for lost
 * and reports it at once; the encoder then sends it again for nothing, and sends less over that link. The governor
 * takes the reports off the way, and makes its own for those packets that should have arrived by now.
 *
 * It has no timer, socket or clock: times are in milliseconds of a clock that never goes back.
 */
import {
  advance,
  distanceBetween,
  flowWindow,
  jumpMax,
  type NumberRange,
  rememberedMax,
  toRanges,
} from './sequence-numbers.ts'

/** Lateness is that of the last one to two of these. */
const latenessWindowMillis = 5_000
/** While little is known about the links. */
const firstMillis = 3_000
const firstHoldMillis = 150
/** What a packet may be later than all before it. */
const latenessMargin = { factor: 1.2, millis: 10 } as const
/** The part of the latency for a report, and for its answer: five attempts fit into the whole. */
const latencyShare = 6

/** So many at once are missing after an outage, and not after a pause of the stream. */
const outagePacketsMin = 32

export interface GovernorView {
  /** Whether a copy of the packet has arrived. */
  readonly hasArrived: (sequenceNumber: number) => boolean
  /** Of the connection, as both ends agreed. */
  readonly latencyMillis: () => number
}

/** What was done about the packets that the engine reported as lost. Each of them is counted once. */
export interface GovernorCounters {
  /** Whose report was taken off the way. */
  held: number
  /** Of these, reported to the encoder. */
  reported: number
  /** Of these, arrived without a report. */
  saved: number
}

/** What the encoder has to hear now, in ascending order. */
export interface DueReports {
  /** For the first time. */
  readonly first: readonly NumberRange[]
  /** Once more: the report or the packet was lost again. */
  readonly again: readonly NumberRange[]
}

interface Missing {
  readonly dueAt: number
  /** Of the latest report; undefined before the first one. */
  reportedAt: number | undefined
}

export class LossGovernor {
  readonly counters: GovernorCounters = { held: 0, reported: 0, saved: 0 }
  readonly #view: GovernorView
  readonly #missingMax: number
  /** By the low bits of a sequence number: when a later one arrived first. */
  readonly #passedAt = new Float64Array(rememberedMax)
  /** The same, or before, where no link delivered anything. */
  readonly #dueAt = new Float64Array(rememberedMax)
  readonly #missing = new Map<number, Missing>()
  #newest: number | undefined
  /** Of the latest packet, in order or not. */
  #receivedAt = 0
  #startedAt = Number.POSITIVE_INFINITY
  /** All below have arrived or are given up. */
  #acknowledged: number | undefined
  #latest = { since: Number.NEGATIVE_INFINITY, millis: 0 }
  #previousMillis = 0

  /** @param missingMax the length of the list: SRT's flow window, above which no packet is under way. */
  constructor(view: GovernorView, missingMax = flowWindow) {
    this.#view = view
    this.#missingMax = missingMax
  }

  /** Whether {@link due} may have something to report. */
  get isWaiting(): boolean {
    return this.#missing.size > 0
  }

  /**
   * A data packet arrived: the first of its copies, or the original after a repeat.
   * @returns how much later than a packet that was sent after it; 0 for one in order, or one that was sent again.
   */
  receive(sequenceNumber: number, isRetransmitted: boolean, now: number): number {
    const receivedAt = this.#receivedAt
    this.#receivedAt = now
    if (this.#newest === undefined) {
      this.#newest = sequenceNumber
      this.#startedAt = now
      return 0
    }
    const distance = distanceBetween(this.#newest, sequenceNumber)
    if (distance > jumpMax) {
      // Another stream, or a forged packet: nothing before it is expected.
      this.#missing.clear()
      this.#newest = sequenceNumber
    } else if (distance > 0) {
      // What was sent during an outage of all links was due evenly while nothing arrived.
      const step = distance < outagePacketsMin ? 0 : (now - receivedAt) / distance
      for (let offset = 1; offset <= distance; offset += 1) {
        const place = advance(this.#newest, offset) % rememberedMax
        this.#passedAt[place] = now
        this.#dueAt[place] = now - step * (distance - offset)
      }
      this.#newest = sequenceNumber
    } else if (distance >= -jumpMax && !isRetransmitted) {
      const late = now - (this.#passedAt[sequenceNumber % rememberedMax] ?? now)
      this.#noteLateness(late, now)
      return late
    }
    return 0
  }

  /** The engine reported these packets as lost. */
  hold(ranges: readonly NumberRange[]): void {
    if (this.#newest === undefined) return
    for (const { first, last } of ranges) {
      // What is ahead of the newest packet is not missing yet.
      const ahead = Math.max(0, distanceBetween(this.#newest, last))
      const count = distanceBetween(first, last) + 1 - ahead
      const age = -distanceBetween(this.#newest, first)
      if (age < 0 || age > jumpMax) continue
      for (let offset = 0; offset < count && this.#missing.size < this.#missingMax; offset += 1)
        this.#add(advance(first, offset))
    }
  }

  /** @param next the number after the last packet that the engine has received or given up. */
  acknowledge(next: number): void {
    if (this.#acknowledged === undefined || distanceBetween(this.#acknowledged, next) > 0) this.#acknowledged = next
  }

  /** What to report now. To be called about every 10 ms while {@link isWaiting}. */
  due(now: number): DueReports {
    const [first, again]: [number[], number[]] = [[], []]
    const holdMillis = this.#holdMillis(now)
    // An encoder with a limit sends nothing but repeats late, and each of them twice when it hears of them twice.
    const repeatMillis = this.#view.latencyMillis() / latencyShare
    for (const [number, missing] of this.#missing) {
      const hasArrived = this.#view.hasArrived(number)
      if (hasArrived || this.#isGivenUp(number)) {
        this.#missing.delete(number)
        if (hasArrived && missing.reportedAt === undefined) this.counters.saved += 1
      } else if (missing.reportedAt === undefined) {
        if (now - missing.dueAt < holdMillis) continue
        first.push(number)
        missing.reportedAt = now
        this.counters.reported += 1
      } else if (now - missing.reportedAt >= repeatMillis) {
        again.push(number)
        missing.reportedAt = now
      }
    }
    return { first: toSortedRanges(first), again: toSortedRanges(again) }
  }

  /** The most by which a packet arrived later than one that was sent after it, in the last 5 to 10 seconds. */
  latenessMillis(now: number): number {
    this.#turnWindow(now)
    return Math.max(this.#latest.millis, this.#previousMillis)
  }

  #add(number: number): void {
    if (this.#missing.has(number) || this.#view.hasArrived(number) || this.#isGivenUp(number)) return
    this.#missing.set(number, { dueAt: this.#dueAt[number % rememberedMax] ?? 0, reportedAt: undefined })
    this.counters.held += 1
  }

  #isGivenUp(number: number): boolean {
    return this.#acknowledged !== undefined && distanceBetween(this.#acknowledged, number) < 0
  }

  #noteLateness(millis: number, now: number): void {
    this.#turnWindow(now)
    this.#latest.millis = Math.max(this.#latest.millis, millis)
  }

  #turnWindow(now: number): void {
    const age = now - this.#latest.since
    if (age < latenessWindowMillis) return
    this.#previousMillis = age < 2 * latenessWindowMillis ? this.#latest.millis : 0
    this.#latest = { since: now, millis: 0 }
  }

  #holdMillis(now: number): number {
    const known = latenessMargin.factor * this.latenessMillis(now) + latenessMargin.millis
    const held = now - this.#startedAt < firstMillis ? Math.max(known, firstHoldMillis) : known
    return Math.min(held, this.#view.latencyMillis() / latencyShare)
  }
}

const toSortedRanges = (numbers: number[]): NumberRange[] => toRanges(numbers.sort((a, b) => distanceBetween(b, a)))
