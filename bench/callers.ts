/** Callers in a closed loop: each makes its next call when its last one was answered. */
import type { Reading } from './pairs.ts'

/** Works on all items with `callers` concurrent callers. Rejects as soon as one call fails. */
export async function runCallers<Item>(
  items: Iterable<Item>,
  callers: number,
  work: (item: Item) => Promise<unknown>,
): Promise<Reading> {
  const left = items[Symbol.iterator]()
  const latencies: number[] = []
  const startedAt = performance.now()
  const caller = async () => {
    for (let next = left.next(); !next.done; next = left.next()) {
      const sentAt = performance.now()
      await work(next.value)
      latencies.push(performance.now() - sentAt)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - startedAt) / 1000
  return { ...summarizeLatencies(latencies), 'per second': latencies.length / seconds }
}

export function summarizeLatencies(latencies: readonly number[]): Reading {
  const sorted = latencies.toSorted((a, b) => a - b)
  const quantile = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { 'p50 ms': quantile(0.5), 'p99 ms': quantile(0.99), 'max ms': quantile(1) }
}
