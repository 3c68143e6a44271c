/** The summary of a run of all suites. */
import { expect, test } from 'vitest'
import { type SuiteReport, summarize } from './summary.ts'

const passing = { fullName: 'passes', status: 'passed', failureMessages: [] }
const failing = { fullName: 'fails', status: 'failed', failureMessages: ['expected 1 to be 2'] }
const atSecondTry = { fullName: 'passes later', status: 'passed', failureMessages: ['too early'] }

function report(...tests: SuiteReport['testResults'][number]['assertionResults']): SuiteReport {
  const count = (status: string) => tests.filter((result) => result.status === status).length
  const status = count('failed') > 0 ? 'failed' : 'passed'
  return {
    numPassedTests: count('passed'),
    numFailedTests: count('failed'),
    numPendingTests: 0,
    testResults: [{ name: '/project/test/some.test.ts', status, message: '', assertionResults: tests }],
  }
}

const summaryOf = (...reports: (SuiteReport | undefined)[]) => {
  const { lines, hasFailed } = summarize(reports, '/project')
  return { text: lines.join('\n'), hasFailed }
}

test('suites that passed are one line with the sum of their tests', () => {
  expect(summaryOf(report(passing), report(passing, passing))).toEqual({
    text: '\n3 passed, 0 failed',
    hasFailed: false,
  })
})

test('a failed test is printed with its file and its reason', () => {
  const { text, hasFailed } = summaryOf(report(passing, failing))
  expect(text).toBe('\nFAILED test/some.test.ts: fails\nexpected 1 to be 2\n\n1 passed, 1 failed')
  expect(hasFailed).toBe(true)
})

test('one test may need a second try, and is printed with why it failed', () => {
  const { text, hasFailed } = summaryOf(report(passing, atSecondTry))
  expect(text).toContain('PASSED AT THE SECOND TRY test/some.test.ts: passes later\ntoo early')
  expect(text).toContain('2 passed, 0 failed, 1 at the second try')
  expect(hasFailed).toBe(false)
})

test('two tests that need a second try fail the run, also when they are of different suites', () => {
  expect(summaryOf(report(passing, atSecondTry), report(passing, atSecondTry)).hasFailed).toBe(true)
})

test('a file that cannot be loaded counts as a failure, and its error is printed', () => {
  const file = { name: '/project/test/some.test.ts', status: 'failed', message: 'SyntaxError', assertionResults: [] }
  const { text, hasFailed } = summaryOf({ ...report(passing), testResults: [file] })
  expect(text).toBe('\nFAILED test/some.test.ts\nSyntaxError\n\n1 passed, 1 failed')
  expect(hasFailed).toBe(true)
})

test('a suite without a report, or without a test that passed, fails the run', () => {
  expect(summaryOf(report(passing), undefined)).toEqual({ text: '\n1 passed, 1 failed', hasFailed: true })
  expect(summaryOf(report(passing), report())).toMatchObject({ hasFailed: true })
})

test('long messages are cut', () => {
  const long = { ...failing, failureMessages: ['x'.repeat(10_000)] }
  expect(summaryOf(report(long)).text.length).toBeLessThan(2_100)
})
