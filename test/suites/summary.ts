/** The end of a CI run: all failures of its suites once more, and one line with the numbers of tests. */
import { relative } from 'node:path'

/** What is used of a report of Vitest's JSON reporter. */
export interface SuiteReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly testResults: readonly FileResult[]
}

interface FileResult {
  /** The absolute path. */
  readonly name: string
  readonly status: string
  /** Why the file could not be loaded. */
  readonly message: string
  readonly assertionResults: readonly {
    readonly fullName: string
    readonly status: string
    /** Also of the first try of a test that passed at the second. */
    readonly failureMessages: readonly string[]
  }[]
}

export interface Summary {
  readonly lines: readonly string[]
  readonly hasFailed: boolean
}

/** Of all suites of a run. More are a fault of the product or of the test. */
const secondTriesMax = 1
const textLengthMax = 2_000

/**
 * @param reports undefined for a suite that wrote none, which counts as one failure, as does a file that could not be
 * loaded.
 * @param folder of the project, to which paths are relative.
 */
export function summarize(reports: readonly (SuiteReport | undefined)[], folder: string): Summary {
  const files = reports.flatMap((report) => report?.testResults ?? [])
  const failures = files.flatMap((file) => failuresOf(file, folder))
  const secondTries = files.flatMap((file) => secondTriesOf(file, folder))
  const countOf = (count: (report: SuiteReport) => number) =>
    reports.reduce((sum, report) => sum + (report === undefined ? 0 : count(report)), 0)
  const passed = countOf((report) => report.numPassedTests)
  const skipped = countOf((report) => report.numPendingTests)
  const silent = reports.filter((report) => report === undefined || report.numPassedTests === 0).length
  const failed =
    Math.max(
      failures.length,
      countOf((report) => report.numFailedTests),
    ) + silent
  const numbers = [
    `${passed} passed, ${failed} failed`,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(secondTries.length > 0 ? [`${secondTries.length} at the second try`] : []),
  ]
  return {
    lines: [
      ...failures.map((text) => `\nFAILED ${text.slice(0, textLengthMax)}`),
      ...secondTries.map((text) => `\nPASSED AT THE SECOND TRY ${text.slice(0, textLengthMax)}`),
      `\n${numbers.join(', ')}`,
    ],
    hasFailed: failed > 0 || secondTries.length > secondTriesMax,
  }
}

function failuresOf({ name, status, message, assertionResults }: FileResult, folder: string): string[] {
  if (status !== 'failed') return []
  const file = relative(folder, name)
  const failed = assertionResults.filter((test) => test.status === 'failed')
  if (failed.length === 0) return [`${file}\n${message}`]
  return failed.map(({ fullName, failureMessages }) => `${file}: ${fullName}\n${failureMessages.join('\n')}`)
}

const secondTriesOf = ({ name, assertionResults }: FileResult, folder: string): string[] =>
  assertionResults
    .filter(({ status, failureMessages }) => status === 'passed' && failureMessages.length > 0)
    .map(({ fullName, failureMessages }) => `${relative(folder, name)}: ${fullName}\n${failureMessages[0]}`)
