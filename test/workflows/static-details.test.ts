/** The static details of workflows, which users' texts cannot break. */
import { expect, test } from 'vitest'
import { listDetails } from '../../workflows/static-details-client.ts'

test('details without a value are left out', () => {
  expect(
    listDetails([
      ['connection', 'obs.main-2'],
      ['address', null],
      ['region', 'local'],
    ]),
  ).toBe('- connection `obs.main-2`\n- region `local`')
})

test('a value cannot end its quotation, begin another line, or be longer than 100 characters', () => {
  expect(listDetails([['connection', '`**x**`\n# y\u202e']])).toBe('- connection `**x**# y`')
  expect(listDetails([['connection', 'x'.repeat(500)]])).toHaveLength('- connection ``'.length + 100)
})
