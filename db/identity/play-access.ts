/** Whether the stream token of an account admits players, or play keys only. */
import { firstValue, type Sql } from '../connection.ts'

/** Whether players need a play key; false for an unknown account. */
export const findPlayAccess = async (sql: Sql, userId: string): Promise<boolean> =>
  (await firstValue(sql<{ playWithKeysOnly: boolean }[]>`
    select play_with_keys_only from users where id = ${userId}`)) ?? false

/** @returns whether that is a change. */
export const setPlayAccess = async (tx: Sql, userId: string, playWithKeysOnly: boolean): Promise<boolean> => {
  const { count } = await tx`
    update users set play_with_keys_only = ${playWithKeysOnly}
    where id = ${userId} and play_with_keys_only <> ${playWithKeysOnly}`
  return count === 1
}
