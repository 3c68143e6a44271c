/** The results: one row a figure, as every measuring command writes it to its JSON file and docs/proof.md shows it. */
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { dirname } from 'node:path'
import { median, type Pair, spreadOf } from './pairs.ts'

/** How a target limits a row: from below, from above, or as the greatest difference of the ratio from 1. */
export type Bound = 'at_least' | 'at_most' | 'within'

/** Something that is measured, by its stable name. */
export interface Figure {
  readonly name: string
  readonly what: string
  readonly unit: string
  /** Without a target the figure is only reported. */
  readonly target?: number
  readonly bound?: Bound
}

/** A measured figure. Null where there is none. */
export interface Row {
  readonly name: string
  readonly what: string
  readonly unit: string
  /** The median of the floor, in the same unit. */
  readonly floor: number | null
  /** The median of the service; null when the measurement failed. */
  readonly ours: number | null
  /** The median of the pairs' ratios of the service to the floor. */
  readonly ratio: number | null
  /** The lowest and the highest ratio; without a ratio, the lowest and the highest value of the service. */
  readonly low: number | null
  readonly high: number | null
  /** Limits the ratio; without a ratio, the value of the service. */
  readonly target: number | null
  readonly bound: Bound | null
  /** True without a target, and false when the measurement failed. */
  readonly met: boolean
  /** Of a measurement at several sizes: the number of live sessions. */
  readonly sessions?: number
  /** Why the measurement failed. */
  readonly error?: string
  /** When the row was measured, in UTC, on which machine, and the machine's load average of one minute by then. */
  readonly measuredAt: string
  readonly machine: string
  readonly load: number
}

function rowOf(figure: Figure, values: Pick<Row, 'floor' | 'ours' | 'ratio' | 'low' | 'high'>): Row {
  const { name, what, unit, target, bound } = figure
  return {
    name,
    what,
    unit,
    ...values,
    target: target ?? null,
    bound: bound ?? null,
    met: isMet(figure, values.ratio ?? values.ours),
    measuredAt: `${new Date().toISOString().slice(0, 19)}Z`,
    machine: `${availableParallelism()} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}`,
    load: Number(loadavg()[0]?.toFixed(1)),
  }
}

function isMet({ target, bound }: Figure, value: number | null): boolean {
  if (value === null) return false
  if (target === undefined) return true
  if (bound === 'within') return Math.abs(value - 1) <= target
  return bound === 'at_least' ? value >= target : value <= target
}

const rounded = (value: number): number => Number(value.toPrecision(5))

/**
 * Compares one figure of the service with the floor. The median of the pairs' ratios decides whether the target is met.
 */
export function compare(figure: Figure, pairs: readonly Pair[], reading: string): Row {
  const of = (side: keyof Pair) => pairs.map((pair) => pair[side][reading] ?? Number.NaN)
  const floors = of('floor')
  const ratio = spreadOf(of('ours').map((value, index) => value / (floors[index] ?? Number.NaN)))
  return rowOf(figure, {
    floor: rounded(median(floors)),
    ours: rounded(median(of('ours'))),
    ratio: rounded(ratio.median),
    low: rounded(ratio.min),
    high: rounded(ratio.max),
  })
}

/** A figure without a floor that the target could be compared with. @param spread of several values of the service. */
export const single = (
  figure: Figure,
  value: number,
  spread?: { readonly min: number; readonly max: number },
  floor: number | null = null,
): Row =>
  rowOf(figure, {
    floor,
    ours: rounded(value),
    ratio: null,
    low: spread ? rounded(spread.min) : null,
    high: spread ? rounded(spread.max) : null,
  })

/** A figure with its ratio, computed by the caller. */
export const withRatio = (
  figure: Figure,
  {
    floor,
    ours,
    ratio,
    low = ratio,
    high = ratio,
  }: { floor: number; ours: number; ratio: number; low?: number; high?: number },
): Row =>
  rowOf(figure, {
    floor: rounded(floor),
    ours: rounded(ours),
    ratio: rounded(ratio),
    low: rounded(low),
    high: rounded(high),
  })

/** A figure that could not be measured. */
export const failed = (figure: Figure, error: unknown): Row => ({
  ...rowOf(figure, { floor: null, ours: null, ratio: null, low: null, high: null }),
  error: error instanceof Error ? error.message : String(error),
})

/** Writes the rows as JSON, and creates the folder when it is missing. */
export async function writeRows(file: string, rows: readonly Row[]): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(rows, null, 2)}\n`)
}
