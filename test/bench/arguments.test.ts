/** The arguments of the benchmarks. */
import { expect, onTestFinished, test, vi } from 'vitest'
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
    networks: [],
  })
})

test('the networks of bonded streams are chosen by name, and unknown ones are refused', () => {
  expect(readBenchArguments(['bonding', '--networks', 'clean', 'loss']).networks).toEqual(['clean', 'loss'])
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Error('the process has ended')
  })
  onTestFinished(() => exit.mockRestore())
  expect(() => readBenchArguments(['bonding', '--networks', 'space'])).toThrow('the process has ended')
  expect(exit).toHaveBeenCalledWith(2)
})
