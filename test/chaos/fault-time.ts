/** The time in which the service was not whole. */
import type { Evidence } from './evidence.ts'

/** A process that was away needs some time to take up its work. */
const recoveryMillis = 5_000

/** The part of a time in which any process was away or had just come back. */
export function faultMillis({ journal }: Evidence, from: number, until: number): number {
  let sum = 0
  let counted = from
  for (const fault of journal.faults.toSorted((a, b) => a.from - b.from)) {
    const begin = Math.max(counted, fault.from)
    const end = Math.min(until, fault.until + recoveryMillis)
    if (end <= begin) continue
    sum += end - begin
    counted = end
  }
  return sum
}
