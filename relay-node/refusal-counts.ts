/** Counts refused callers by reason, without their addresses, for the log and for health reports. */
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import { type Log, limitLog } from './log.ts'
import type { Role } from './stream-access.ts'

/** The last refusal of a role. */
export interface LastRefusal {
  readonly reason: RelayRefusal
  readonly at: number
}

export class RefusalCounts {
  readonly #counts = new Map<RelayRefusal, number>()
  readonly #last = new Map<Role, LastRefusal>()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = limitLog(log)
  }

  add(reason: RelayRefusal, role: Role, now: number): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1)
    this.#last.set(role, { reason, at: now })
    this.#log('warn', 'callers were refused', { reason })
  }

  /** Since the start of the relay. A reason without refusals is absent. */
  list(): Partial<Record<RelayRefusal, number>> {
    return Object.fromEntries(this.#counts)
  }

  last(role: Role): LastRefusal | undefined {
    return this.#last.get(role)
  }
}
