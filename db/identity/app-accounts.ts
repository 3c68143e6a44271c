/** The accounts that apps act for. */
import { hasRow, type Sql } from '../connection.ts'

/** Whether apps of the account may get tokens. */
export const findGrantableAccount = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`select from users where id = ${userId} and disabled_at is null`)
