/** The result of a run, as a file and as text. */
import { writeFile } from 'node:fs/promises'
import type { Violation } from './invariants.ts'
import type { Journal } from './journal.ts'
import type { FaultKind, FaultTarget } from './plan.ts'

export interface Report {
  readonly seed: number
  readonly seconds: number
  /** Accepted requests by kind, and the health reports of simulated relays. */
  readonly accepted: Readonly<Record<string, number>>
  /** Faults by kind and target. */
  readonly faults: Readonly<Partial<Record<FaultKind, Partial<Record<FaultTarget, number>>>>>
  readonly violations: readonly Violation[]
  /** Requests that were refused or got no answer, by kind and reason. */
  readonly refused: Readonly<Record<string, number>>
  /** Processes that ended by themselves and were started again. */
  readonly crashes: readonly string[]
}

export const createReport = (
  run: { readonly seed: number; readonly seconds: number },
  journal: Journal,
  violations: readonly Violation[],
): Report => ({
  ...run,
  accepted: sortKeys(journal.accepted),
  faults: countFaults(journal),
  violations,
  refused: sortKeys(journal.refused),
  crashes: journal.crashes,
})

const sortKeys = (counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => (a < b ? -1 : 1)))

function countFaults({ faults }: Journal): Report['faults'] {
  const counts: Partial<Record<FaultKind, Partial<Record<FaultTarget, number>>>> = {}
  for (const { kind, target } of faults) {
    const ofKind = counts[kind] ?? {}
    counts[kind] = ofKind
    ofKind[target] = (ofKind[target] ?? 0) + 1
  }
  return counts
}

export const writeReport = (report: Report, file: string): Promise<void> =>
  writeFile(file, `${JSON.stringify(report, null, 2)}\n`)

const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')

export const summarize = ({ seed, seconds, accepted, faults, violations, refused, crashes }: Report): string =>
  [
    `seed ${seed}, ${seconds} s`,
    `accepted: ${countsText(accepted)}`,
    `refused or unanswered: ${countsText(refused)}`,
    ...Object.entries(faults).map(([kind, targets]) => `${kind}: ${countsText(targets)}`),
    ...crashes.map((text) => `ended by itself: ${text}`),
    ...violations.map(({ invariant, text }) => `VIOLATION ${invariant}: ${text}`),
    `${violations.length} violations`,
  ].join('\n')
