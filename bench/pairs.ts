/** Alternates measurements of the floor and of the service, so that other load on this machine affects both. */
import { loadavg } from 'node:os'
import { logProgress } from './stack.ts'

/** Figures by name. */
export type Reading = Readonly<Record<string, number>>

export interface Pair {
  readonly floor: Reading
  readonly ours: Reading
}

export interface PairOptions {
  readonly what: string
  /** Number of pairs, without the warm-up pair. */
  readonly rounds: number
  floor(): Promise<Reading>
  ours(): Promise<Reading>
}

export async function measurePairs({ what, rounds, floor, ours }: PairOptions): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const pair = { floor: await floor(), ours: await ours() }
    if (round > 0) pairs.push(pair)
    const load = `load ${loadavg()[0]?.toFixed(1)}`
    logProgress(
      `${what}, ${round === 0 ? 'warm-up' : `${round} of ${rounds}`} (${load}): floor ${formatReading(pair.floor)} | ours ${formatReading(pair.ours)}`,
    )
  }
  return pairs
}

const formatReading = (reading: Reading): string =>
  Object.entries(reading)
    .map(([name, value]) => `${name} ${formatNumber(value)}`)
    .join(', ')

export const formatNumber = (value: number): string =>
  Number.isNaN(value)
    ? '–'
    : Number.isInteger(value) || value >= 100
      ? String(Math.round(value))
      : value.toFixed(value >= 10 ? 1 : 2)

export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { min: sorted[0] ?? Number.NaN, median: quantile(sorted, 0.5), max: sorted.at(-1) ?? Number.NaN }
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export const quantileOf = (values: readonly number[], share: number): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    share,
  )

export const median = (values: readonly number[]): number => spreadOf(values).median
