/** Memory and CPU time of a program during the run. */

import { median } from '../pairs.ts'
import { cpuMicros, residentMegabytes } from '../process-cost.ts'
import type { RunningProgram } from '../stack.ts'

interface Sample {
  readonly atMinutes: number
  /** Resident. */
  readonly megabytes: number
  /** Objects of the program, including those that the next collection removes. */
  readonly heapMegabytes: number
}

export class ProcessSamples {
  readonly #pid: number
  readonly #metricsUrl: string
  readonly #samples: Sample[] = []
  #cpuBefore = 0
  #startedAt = 0

  /** @param metricsUrl has the size of the heap. */
  constructor({ pid }: RunningProgram, metricsUrl: string) {
    this.#pid = pid
    this.#metricsUrl = metricsUrl
  }

  /** Drops the samples of the ramp. */
  async beginMeasuring(): Promise<void> {
    this.#samples.length = 0
    this.#cpuBefore = await cpuMicros(this.#pid)
    this.#startedAt = performance.now()
  }

  /** Returns the resident memory in MB. */
  async sample(): Promise<number> {
    const [megabytes, heapMegabytes] = await Promise.all([residentMegabytes(this.#pid), readHeap(this.#metricsUrl)])
    this.#samples.push({ atMinutes: performance.now() / 60_000, megabytes, heapMegabytes })
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
   * The growth of the resident memory in MB per minute over the second half: the median of the slopes of all pairs of
   * samples (Theil–Sen), on which single peaks before a garbage collection have no influence.
   */
  get growth(): number {
    const later = this.#samples.slice(Math.floor(this.#samples.length / 2))
    return medianSlope(later.map(({ atMinutes, megabytes }) => [atMinutes, megabytes]))
  }

  /**
   * The growth in MB per minute of what collections leave: the median of the slopes between the lowest heaps of all
   * minutes. A leak raises it, garbage does not.
   */
  get heapGrowth(): number {
    const lowest = new Map<number, number>()
    for (const { atMinutes, heapMegabytes } of this.#samples) {
      const minute = Math.floor(atMinutes)
      lowest.set(minute, Math.min(heapMegabytes, lowest.get(minute) ?? Number.POSITIVE_INFINITY))
    }
    return medianSlope([...lowest])
  }
}

type Point = readonly [atMinutes: number, megabytes: number]

const medianSlope = (points: readonly Point[]): number =>
  median(
    points.flatMap(([at, megabytes], index) =>
      points.slice(index + 1).map(([laterAt, laterMegabytes]) => (laterMegabytes - megabytes) / (laterAt - at)),
    ),
  )

/** NaN when the program does not answer. */
async function readHeap(metricsUrl: string): Promise<number> {
  const text = await fetch(metricsUrl).then(
    (answer) => answer.text(),
    () => '',
  )
  return Number(/^nodejs_heap_size_used_bytes(?:\{.*\})? (\S+)$/m.exec(text)?.[1] ?? Number.NaN) / 1e6
}
