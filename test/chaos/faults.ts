/**
 * Carries out the faults of a plan. Every fault ends, and the target serves again, before the next fault of the target.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Journal } from './journal.ts'
import { type Fault, type FaultTarget, reportPath } from './plan.ts'
import type { Service } from './service.ts'

const readySecondsMax = 90

export class Faults {
  /** The last fault of each target. */
  readonly #running = new Map<FaultTarget, Promise<void>>()

  constructor(
    readonly service: Pick<Service, 'servers' | 'reportPath'>,
    readonly journal: Journal,
  ) {}

  /** Resolves when the target serves again. Rejects when it does not. */
  inject(fault: Fault): Promise<void> {
    const before = this.#running.get(fault.target) ?? Promise.resolve()
    const running = before.then(() => this.#inject(fault))
    this.#running.set(
      fault.target,
      running.catch(() => {}),
    )
    return running
  }

  async #inject({ kind, target, forMillis, cutMode }: Fault): Promise<void> {
    const { servers, reportPath: path } = this.service
    const cuttable = target === reportPath ? path : servers[target]
    const from = Date.now()
    let healedAt: number
    if (kind === 'cut' || target === reportPath) {
      cuttable.cut(cutMode)
      await sleep(forMillis)
      healedAt = Date.now()
      cuttable.restore()
    } else {
      const server = servers[target]
      await (kind === 'kill' ? server.kill() : server.pause())
      await sleep(forMillis)
      healedAt = Date.now()
      await (kind === 'kill' ? server.start() : server.resume())
    }
    await withLimit(cuttable.untilReady(), `${target} serves after ${kind}`)
    this.journal.faults.push({ kind, target, from, healedAt, until: Date.now() })
  }
}

async function withLimit(promise: Promise<void>, what: string): Promise<void> {
  const timer = new AbortController()
  const limit = sleep(readySecondsMax * 1000, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`not met after ${readySecondsMax} s: ${what}`)
  })
  await Promise.race([promise, limit]).finally(() => timer.abort())
  await limit.catch(() => {})
}
