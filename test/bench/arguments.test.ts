/** The arguments of the benchmarks. */
import { expect, test } from 'vitest'
import { readBenchArguments } from '../../bench/arguments.ts'
import { measurements } from '../../bench/figures.ts'

test('without a name everything is measured, also when the rows are written to a file', () => {
  for (const argv of [[], ['--json', 'rows.json']])
    expect(readBenchArguments(argv)).toMatchObject({ measurements, isWholeRun: true })
})

test('named measurements are made in the order of the table', () => {
  expect(readBenchArguments(['stop', 'active', '--pairs', '3'])).toEqual({
    measurements: ['active', 'stop'],
    isWholeRun: false,
    pairs: 3,
  })
})
