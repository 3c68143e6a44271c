/** The result of a run, as a file and as text. */
import { writeFile } from 'node:fs/promises'
import type { Evidence } from './evidence.ts'
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
  /** What one relay suffered, by kind. */
  readonly relayFaults: Readonly<Record<string, number>>
  /** The longest time without a block that a player of the stream had, after each fault of its relay, in seconds. */
  readonly streamGaps: Readonly<Record<string, readonly number[]>>
  readonly replacements: number
  readonly violations: readonly Violation[]
  /** Requests that were refused or got no answer, by kind and reason. */
  readonly refused: Readonly<Record<string, number>>
  /** Processes that ended by themselves and were started again. */
  readonly crashes: readonly string[]
}

export const createReport = (
  run: { readonly seed: number; readonly seconds: number },
  { journal, replacements }: Evidence,
  violations: readonly Violation[],
): Report => ({
  ...run,
  accepted: sortKeys(journal.accepted),
  faults: countFaults(journal),
  relayFaults: countRelayFaults(journal),
  streamGaps: groupGaps(journal),
  replacements: replacements.length,
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

function countRelayFaults({ relayFaults }: Journal): Report['relayFaults'] {
  const counts: Record<string, number> = {}
  for (const { type } of relayFaults) counts[type] = (counts[type] ?? 0) + 1
  return sortKeys(counts)
}

function groupGaps({ streamGaps }: Journal): Report['streamGaps'] {
  const gaps: Record<string, number[]> = {}
  for (const { kind, isReplaced, seconds } of streamGaps) {
    const name = `${kind}, ${isReplaced ? 'replaced' : 'not replaced'}`
    gaps[name] = [...(gaps[name] ?? []), seconds]
  }
  return gaps
}

export const writeReport = (report: Report, file: string): Promise<void> =>
  writeFile(file, `${JSON.stringify(report, null, 2)}\n`)

const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')

const secondsText = (values: readonly number[]): string =>
  values
    .toSorted((a, b) => a - b)
    .map((value) => value.toFixed(1))
    .join(' ')

export const summarize = (report: Report): string => {
  const { seed, seconds, accepted, faults, relayFaults, streamGaps, replacements, violations, refused, crashes } =
    report
  return [
    `seed ${seed}, ${seconds} s`,
    `accepted: ${countsText(accepted)}`,
    `refused or unanswered: ${countsText(refused)}`,
    ...Object.entries(faults).map(([kind, targets]) => `${kind}: ${countsText(targets)}`),
    `relays: ${countsText(relayFaults)}; ${replacements} replaced`,
    ...Object.entries(streamGaps).map(([kind, gaps]) => `stream without a block after ${kind}: ${secondsText(gaps)} s`),
    ...crashes.map((text) => `ended by itself: ${text}`),
    ...violations.map(({ invariant, text }) => `VIOLATION ${invariant}: ${text}`),
    `${violations.length} violations`,
  ].join('\n')
}
