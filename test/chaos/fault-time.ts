/** The time in which the service was not whole. It is whole while a relay is not. */
import type { Evidence } from './evidence.ts'
import { streamedRelay } from './plan.ts'

/** A process that was away needs some time to take up its work. */
const recoveryMillis = 5_000

/** The part of a time in which any process was away or had just come back. */
export function faultMillis({ journal }: Evidence, from: number, until: number): number {
  let sum = 0
  let counted = from
  const faults = journal.faults.filter(({ target }) => target !== streamedRelay)
  for (const fault of faults.toSorted((a, b) => a.from - b.from)) {
    const begin = Math.max(counted, fault.from)
    const end = Math.min(until, fault.until + recoveryMillis)
    if (end <= begin) continue
    sum += end - begin
    counted = end
  }
  return sum
}
