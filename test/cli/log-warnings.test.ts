/** The warnings of logs that a local start shows. */
import { expect, test } from 'vitest'
import { formatWarning } from '../../cli/log-warnings.ts'

test('a warning is shown with its time, its level and its cause', () => {
  const entry = {
    level: 'warn',
    time: '2026-11-21T10:33:14.000Z',
    msg: 'not delivered',
    err: { message: 'no answer\nat x' },
  }
  expect(formatWarning('api', JSON.stringify(entry))).toBe('api │ 10:33:14 UTC warn  not delivered: no answer')
})

test.each(['', 'null', '7', '"text"', '[]', '{"level":"warn', '{"level":"info","msg":"listens"}'])(
  'a line that holds %j is not shown',
  (line) => {
    expect(formatWarning('api', line)).toBeUndefined()
  },
)
