/** The runner of the doctor's checks: time limits, severity, exit code, report. */
import { expect, test } from 'vitest'
import { combine, fail, ok, runChecks, warn } from '../../../cli/doctor/check.ts'
import { exitCodeOf, formatJson, formatReport } from '../../../cli/doctor/report.ts'

test('a check that hangs or rejects has failed, and stops no other', async () => {
  const checks = [
    { name: 'hangs', run: () => new Promise<never>(() => {}) },
    { name: 'rejects', run: () => Promise.reject(new Error('first line\n  second line')) },
    {
      name: 'throws',
      run: () => {
        throw new Error('at once')
      },
    },
    { name: 'succeeds', run: async () => ok('as it should') },
  ]
  expect(await runChecks(checks, 100)).toEqual([
    expect.objectContaining({ name: 'hangs', status: 'fail', detail: 'the check failed: no answer within 0.1 s' }),
    expect.objectContaining({ name: 'rejects', status: 'fail', detail: 'the check failed: first line; second line' }),
    expect.objectContaining({ name: 'throws', status: 'fail', detail: 'the check failed: at once' }),
    { name: 'succeeds', status: 'ok', detail: 'as it should', fix: null },
  ])
})

test('a finding is as severe as its worst problem, and names each fix once', () => {
  const [first, second] = [warn('slow', 'Wait.'), warn('late', 'Wait.')]
  expect(combine('fine', [])).toEqual(ok('fine'))
  expect(combine('fine', [first, second])).toEqual({ status: 'warn', detail: 'slow; late', fix: 'Wait.' })
  expect(combine('fine', [first, fail('gone', 'Search.')])).toEqual({
    status: 'fail',
    detail: 'slow; gone',
    fix: 'Wait. Search.',
  })
})

test('only a failed check gives exit code 1', () => {
  const results = [
    { name: 'one', ...ok('fine') },
    { name: 'two', ...warn('slow', 'Wait.') },
  ]
  expect(exitCodeOf(results)).toBe(0)
  expect(exitCodeOf([...results, { name: 'three', ...fail('gone', 'Search.') }])).toBe(1)
})

test('the report has the fix below its check, and JSON has exactly four fields of each', () => {
  const results = [
    { name: 'one', ...ok('fine') },
    { name: 'three', ...fail('gone', 'Search.') },
  ]
  expect(formatReport(results)).toBe(
    '✔ one    fine\n✖ three  gone\n         → Search.\n\n1 ok, 0 to look at, 1 failed\n',
  )
  expect(JSON.parse(formatJson(results))).toEqual({
    checks: [
      { name: 'one', status: 'ok', detail: 'fine', fix: null },
      { name: 'three', status: 'fail', detail: 'gone', fix: 'Search.' },
    ],
  })
})
