/** Random numbers of a simulation: the same seed gives the same sequence. */

export interface Random {
  /** At least 0 and less than 1. */
  next(): number
  /** From `min` to `max`. */
  between(min: number, max: number): number
  chance(probability: number): boolean
  pick<Value>(values: readonly [Value, ...Value[]]): Value
  /** One of the keys, each as often as its weight says. */
  weighted<Key extends string>(weights: Readonly<Record<Key, number>>): Key
}

/** The algorithm is mulberry32: 32 bits of state are enough for some ten thousand decisions. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (min, max) => min + next() * (max - min),
    chance: (probability) => next() < probability,
    pick: (values) => values[Math.floor(next() * values.length)] ?? values[0],
    weighted: <Key extends string>(weights: Readonly<Record<Key, number>>): Key => {
      const entries = Object.entries(weights) as [Key, number][]
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [key, weight] of entries) {
        left -= weight
        if (left < 0) return key
      }
      throw new Error('the weights are not positive')
    },
  }
}
