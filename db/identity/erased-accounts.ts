/** Accounts that were erased at their owner's request. */
import { hasRow, type Sql } from '../connection.ts'

/** Whether the account was erased, as far as it is recorded. */
export const isErased = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`select from erased_accounts where user_id = ${userId}`)
