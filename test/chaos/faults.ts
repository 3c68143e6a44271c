/** Carries out the faults of a plan. Every fault ends, and the target serves again, before the next fault of the target. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Journal } from './journal.ts'
import type { Fault, Target } from './plan.ts'
import type { Server } from './server.ts'

const readySecondsMax = 90

export class Faults {
  /** The last fault of each target. */
  readonly #running = new Map<Target, Promise<void>>()

  constructor(
    readonly servers: Readonly<Record<Target, Server>>,
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
    const server = this.servers[target]
    const from = Date.now()
    if (kind === 'kill') {
      await server.kill()
      await sleep(forMillis)
      await server.start()
    } else if (kind === 'pause') {
      await server.pause()
      await sleep(forMillis)
      await server.resume()
    } else {
      server.cut(cutMode)
      await sleep(forMillis)
      server.restore()
    }
    await withLimit(server.untilReady(), `${target} serves after ${kind}`)
    this.journal.faults.push({ kind, target, from, until: Date.now() })
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
