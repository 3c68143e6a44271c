/** Memory and CPU time of a program during the run. */

import { median } from '../pairs.ts'
import { cpuMicros, residentMegabytes } from '../process-cost.ts'
import type { RunningProgram } from '../stack.ts'

interface Sample {
  readonly atMinutes: number
  readonly megabytes: number
}

export class ProcessSamples {
  readonly #pid: number
  readonly #samples: Sample[] = []
  #cpuBefore = 0
  #startedAt = 0

  constructor({ pid }: RunningProgram) {
    this.#pid = pid
  }

  /** Drops the samples of the ramp. */
  async beginMeasuring(): Promise<void> {
    this.#samples.length = 0
    this.#cpuBefore = await cpuMicros(this.#pid)
    this.#startedAt = performance.now()
  }

  /** Returns the resident memory in MB. */
  async sample(): Promise<number> {
    const megabytes = await residentMegabytes(this.#pid)
    this.#samples.push({ atMinutes: performance.now() / 60_000, megabytes })
    return megabytes
  }

  /** Of one core, in percent, since the measurement began. */
  async cpuPercent(): Promise<number> {
    const micros = (await cpuMicros(this.#pid)) - this.#cpuBefore
    return micros / ((performance.now() - this.#startedAt) * 10)
  }

  /** The lowest, the last and the highest memory of the measurement. */
  get megabytes(): { readonly last: number; readonly min: number; readonly max: number } {
    const values = this.#samples.map((sample) => sample.megabytes)
    return { last: values.at(-1) ?? Number.NaN, min: Math.min(...values), max: Math.max(...values) }
  }

  /**
   * The growth in MB per minute over the second half: the median of the slopes of all pairs of samples (Theil–Sen), on which
   * single peaks before a garbage collection have no influence.
   */
  get growth(): number {
    const later = this.#samples.slice(Math.floor(this.#samples.length / 2))
    const slopes = later.flatMap((one, index) =>
      later.slice(index + 1).map((other) => (other.megabytes - one.megabytes) / (other.atMinutes - one.atMinutes)),
    )
    return median(slopes)
  }
}
