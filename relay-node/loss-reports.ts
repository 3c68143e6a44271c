/** Stands between the loss reports of the engine and an encoder with several network paths. */
import { now } from './clock.ts'
import { type GovernorCounters, type GovernorView, LossGovernor } from './loss-governor.ts'
import type { Bond, Peer } from './peer.ts'
import type { NumberRange } from './sequence-numbers.ts'
import { buildLossReports, parseLossReport } from './srt-packets.ts'

const tickMillis = 10

export interface LossReportCounters extends GovernorCounters {
  /** See {@link LossGovernor.latenessMillis}. */
  readonly latenessMillis: number
}

export class LossReports {
  readonly #peer: Peer
  readonly #bond: Bond
  readonly #governor: LossGovernor
  /** The latest report of the engine, whose header those to the encoder get. */
  #model: Buffer | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(peer: Peer, bond: Bond, view: GovernorView) {
    this.#peer = peer
    this.#bond = bond
    this.#governor = new LossGovernor(view)
  }

  get counters(): LossReportCounters {
    return { ...this.#governor.counters, latenessMillis: this.#governor.latenessMillis(now()) }
  }

  /** See {@link LossGovernor.receive}. */
  receive(sequenceNumber: number, isRetransmitted: boolean): number {
    return this.#governor.receive(sequenceNumber, isRetransmitted, now())
  }

  /** See {@link LossGovernor.acknowledge}. */
  acknowledge(next: number): void {
    this.#governor.acknowledge(next)
  }

  /**
   * @param report of the engine.
   * @returns false for one that the encoder gets as it is: over one path nothing overtakes, and nothing is known about
   * the packets of a malformed one.
   */
  take(report: Buffer): boolean {
    const ranges = this.#bond.pathCount() > 1 ? parseLossReport(report) : undefined
    if (ranges === undefined) return false
    this.#model = report
    this.#governor.hold(ranges)
    this.#arm()
    return true
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#model = undefined
  }

  #arm(): void {
    if (this.#governor.isWaiting) this.#timer ??= setTimeout(() => this.#tick(), tickMillis)
  }

  #tick(): void {
    this.#timer = undefined
    const { first, again } = this.#governor.due(now())
    this.#send(first, (report) => this.#peer.send(report))
    // The one path may have lost the first.
    this.#send(again, (report) => this.#bond.sendOverAll(report))
    this.#arm()
  }

  #send(ranges: readonly NumberRange[], send: (report: Buffer) => void): void {
    if (this.#model === undefined || ranges.length === 0) return
    for (const report of buildLossReports(this.#model, ranges)) send(report)
  }
}
