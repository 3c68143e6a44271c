/** Measures in turns, floor then ours, so that whatever else this machine does falls on both, and compares pair by pair. */
import { loadavg } from 'node:os'
import { say } from './machine.ts'

/** One reading: figures by their names. */
export type Reading = Readonly<Record<string, number>>

export interface Pair {
  readonly floor: Reading
  readonly ours: Reading
}

export interface Turns {
  readonly what: string
  /** Pairs that count; one more before them warms both up. */
  readonly rounds: number
  floor(): Promise<Reading>
  ours(): Promise<Reading>
}

export async function inTurns({ what, rounds, floor, ours }: Turns): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const pair = { floor: await floor(), ours: await ours() }
    if (round > 0) pairs.push(pair)
    const load = `load ${loadavg()[0]?.toFixed(1)}`
    say(
      `${what}, ${round === 0 ? 'warm-up' : `${round} of ${rounds}`} (${load}): floor ${told(pair.floor)} | ours ${told(pair.ours)}`,
    )
  }
  return pairs
}

const told = (reading: Reading): string =>
  Object.entries(reading)
    .map(([name, value]) => `${name} ${shortened(value)}`)
    .join(', ')

export const shortened = (value: number): string =>
  Number.isNaN(value) ? '–' : value >= 100 ? String(Math.round(value)) : value.toFixed(value >= 10 ? 1 : 2)

export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other)
  return { min: sorted[0] ?? Number.NaN, median: quantile(sorted, 0.5), max: sorted.at(-1) ?? Number.NaN }
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export const median = (values: readonly number[]): number => spreadOf(values).median

/** One line of the table. */
export interface Row {
  readonly what: string
  readonly floor: string
  readonly ours: string
  readonly ratio: Spread | undefined
  readonly target: string
  readonly met: boolean
}

/** Ours against the floor in one figure of the readings. The median of the pairs' ratios is what counts. */
export function compare(
  what: string,
  pairs: readonly Pair[],
  { figure, unit, atLeast, atMost }: { figure: string; unit: string; atLeast?: number; atMost?: number },
): Row {
  const of = (side: keyof Pair) => pairs.map((pair) => pair[side][figure] ?? Number.NaN)
  const floors = of('floor')
  const ratio = spreadOf(of('ours').map((value, index) => value / (floors[index] ?? Number.NaN)))
  return {
    what,
    floor: `${shortened(median(floors))} ${unit}`,
    ours: `${shortened(median(of('ours')))} ${unit}`,
    ratio,
    target: atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`,
    met: atLeast === undefined ? ratio.median <= (atMost ?? 0) : ratio.median >= atLeast,
  }
}

/** A figure with a limit and no floor. */
export const absolute = (what: string, value: number, unit: string, most: number): Row => ({
  what,
  floor: '–',
  ours: `${shortened(value)} ${unit}`,
  ratio: undefined,
  target: `≤ ${most} ${unit}`,
  met: value <= most,
})
