/** Latencies and failures of the requests, by operation. */
import { summarizeLatencies } from '../callers.ts'
import type { Reading } from '../pairs.ts'

/** The statuses that answer an operation. */
export const operations = {
  active: { name: 'GET /relay/active', statuses: [200] },
  session: { name: 'GET /auth/session', statuses: [200] },
  refresh: { name: 'POST /auth/refresh', statuses: [200] },
  start: { name: 'POST /relay/start', statuses: [200, 201] },
  stop: { name: 'POST /relay/stop', statuses: [200] },
  // 409: the report of a relay whose session was stopped meanwhile.
  health: { name: 'POST /relay/health', statuses: [200, 409] },
} as const satisfies Record<string, { name: string; statuses: readonly number[] }>

export type Operation = keyof typeof operations

const examplesMax = 5

export class Recorder {
  readonly #latencies = new Map<Operation, number[]>()
  /** 429 and 503: refused with `Retry-After`. */
  refused = 0
  /** Any other status that is not of the operation, and broken connections. */
  unexpected = 0
  readonly examples: string[] = []

  /** Drops the latencies of the ramp. Its failures count. */
  beginMeasuring(): void {
    this.#latencies.clear()
  }

  recordAnswer(operation: Operation, status: number, millis: number, body: string): void {
    if ((operations[operation].statuses as readonly number[]).includes(status)) {
      const latencies = this.#latencies.get(operation) ?? []
      latencies.push(millis)
      this.#latencies.set(operation, latencies)
    } else if (status === 429 || status === 503) this.refused += 1
    else this.recordFailure(operation, `${status} ${body.slice(0, 200)}`)
  }

  recordFailure(operation: Operation, reason: string): void {
    this.unexpected += 1
    if (this.examples.length < examplesMax) this.examples.push(`${operations[operation].name}: ${reason}`)
  }

  countOf(operation: Operation): number {
    return this.#latencies.get(operation)?.length ?? 0
  }

  summarize(operation: Operation): Reading {
    return summarizeLatencies(this.#latencies.get(operation) ?? [])
  }

  /** Answered requests since the measurement began. */
  get answered(): number {
    return [...this.#latencies.values()].reduce((sum, latencies) => sum + latencies.length, 0)
  }
}
