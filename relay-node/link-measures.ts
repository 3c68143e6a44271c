/** What a relay measures about one link of an encoder, over the last 5 to 10 seconds. */
const windowMillis = 5_000
/** Packets of one burst overtake each other by less. */
const lateMillisMin = 5

interface Window {
  packets: number
  late: number
  lateMillisSum: number
  gapMillisMax: number
}

const createWindow = (): Window => ({ packets: 0, late: 0, lateMillisSum: 0, gapMillisMax: 0 })

export interface LinkReading {
  /** Data packets that were not sent again. */
  readonly packets: number
  /** Of these, how many arrived after one that was sent later, from 0 to 1. */
  readonly late: number
  /** By how much they arrived later, in the mean of all. */
  readonly lateMillis: number
  /** The longest time without any datagram. */
  readonly gapMillisMax: number
  /** As the encoder measured it; undefined where it does not report it. */
  readonly rttMillis: number | undefined
}

export class LinkMeasures {
  #latest = createWindow()
  #previous = createWindow()
  #since: number
  #receivedAt: number
  /** As the encoder measured it, which not every one reports. */
  rttMillis: number | undefined

  constructor(now: number) {
    this.#since = now
    this.#receivedAt = now
  }

  /** Any datagram arrived. */
  receive(now: number): void {
    this.#turn(now)
    this.#latest.gapMillisMax = Math.max(this.#latest.gapMillisMax, now - this.#receivedAt)
    this.#receivedAt = now
  }

  /** It was a data packet that had not been sent before. @param lateMillis how much later than one sent after it. */
  receiveData(lateMillis: number): void {
    this.#latest.packets += 1
    this.#latest.lateMillisSum += lateMillis
    if (lateMillis >= lateMillisMin) this.#latest.late += 1
  }

  read(now: number): LinkReading {
    this.#turn(now)
    const sum = (key: keyof Window) => this.#latest[key] + this.#previous[key]
    const packets = sum('packets')
    return {
      packets,
      late: sum('late') / Math.max(packets, 1),
      lateMillis: sum('lateMillisSum') / Math.max(packets, 1),
      gapMillisMax: Math.max(this.#latest.gapMillisMax, this.#previous.gapMillisMax, now - this.#receivedAt),
      rttMillis: this.rttMillis,
    }
  }

  #turn(now: number): void {
    const age = now - this.#since
    if (age < windowMillis) return
    this.#previous = age < 2 * windowMillis ? this.#latest : createWindow()
    this.#latest = createWindow()
    this.#since = now
  }
}
