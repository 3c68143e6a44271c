/**
 * Carries out the faults of a plan. Every fault ends, and the target serves again, before the next fault of the target.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Journal } from './journal.ts'
import { type Fault, type FaultTarget, reportPath, streamedRelay } from './plan.ts'
import type { Service } from './service.ts'
import type { Healed, StreamedRelay } from './streamed-relay.ts'

const readySecondsMax = 90

interface ServiceFault extends Pick<Fault, 'kind' | 'forMillis' | 'cutMode'> {
  readonly target: Exclude<FaultTarget, typeof streamedRelay>
}

export class Faults {
  /** The last fault of each target. */
  readonly #running = new Map<FaultTarget, Promise<void>>()

  constructor(
    readonly service: Pick<Service, 'servers' | 'reportPath'>,
    readonly stream: Pick<StreamedRelay, 'fail'>,
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
    const from = Date.now()
    const { healedAt, untilReady } =
      target === streamedRelay
        ? await this.stream.fail(kind, forMillis)
        : await this.#fail({ kind, target, forMillis, cutMode })
    await withLimit(untilReady, `${target} serves after ${kind}`)
    this.journal.faults.push({ kind, target, from, healedAt, until: Date.now() })
  }

  /** Resolves when the fault is over. */
  async #fail({ kind, target, forMillis, cutMode }: ServiceFault): Promise<Healed> {
    const { servers, reportPath: path } = this.service
    if (kind === 'cut' || target === reportPath) {
      const cuttable = target === reportPath ? path : servers[target]
      cuttable.cut(cutMode)
      await sleep(forMillis)
      cuttable.restore()
      return { healedAt: Date.now(), untilReady: cuttable.untilReady() }
    }
    const server = servers[target]
    await (kind === 'kill' ? server.kill() : server.pause())
    await sleep(forMillis)
    const healedAt = Date.now()
    await (kind === 'kill' ? server.start() : server.resume())
    return { healedAt, untilReady: server.untilReady() }
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
