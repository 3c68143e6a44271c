/** The growing pauses of repeated attempts, as SQL computes them. */
import { expect, test } from 'vitest'
import { backoffSeconds } from '../../db/backoff.ts'
import { startApi } from '../support/api.ts'

const { sql } = await startApi()

test('the delay of a stored backoff doubles with each failure, up to the longest one', async () => {
  const delays = { firstSeconds: 5, secondsMax: 100 }
  const rows = await sql<{ seconds: number }[]>`
    select ${backoffSeconds(sql, sql`failures`, delays)} as seconds
    from unnest(array[0, 1, 2, 4, 5, 32767]) with ordinality as attempts (failures, place) order by place`
  expect(rows.map(({ seconds }) => seconds)).toEqual([5, 10, 20, 80, 100, 100])
})
