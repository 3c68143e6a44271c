/** Exponential backoff that is stored: the row counts the attempts and has the time of the next one. */
import type { Fragment, Sql } from './connection.ts'

interface Delays {
  readonly firstSeconds: number
  /** The longest delay. */
  readonly secondsMax: number
}

/**
 * The seconds until the next attempt, as an expression: the first delay, doubled with each failure.
 * @param doublings how often, as an expression. The limit keeps the power within the range of numbers.
 */
export const backoffSeconds = (sql: Sql, doublings: Fragment, { firstSeconds, secondsMax }: Delays): Fragment =>
  sql`least(${secondsMax}, ${firstSeconds} * power(2, least(${doublings}, 20)))`
