/** Counts refused callers by reason, without their addresses, for the log and for health reports. */
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import { type Log, limitLog } from './log.ts'

export class RefusalCounts {
  readonly #counts = new Map<RelayRefusal, number>()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = limitLog(log)
  }

  add(reason: RelayRefusal): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1)
    this.#log('warn', 'callers were refused', { reason })
  }

  /** Since the start of the relay. A reason without refusals is absent. */
  list(): Partial<Record<RelayRefusal, number>> {
    return Object.fromEntries(this.#counts)
  }
}
