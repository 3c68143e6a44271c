/** Epochs. After a restore the database does not know what happened since its backup, so a new epoch begins. */
import { hasRow, type Sql } from './connection.ts'

/** @returns whether the epoch is new to this database. Safe to repeat. */
export const beginEpoch = async (sql: Sql, name: string): Promise<boolean> =>
  hasRow(sql`insert into epochs (name) values (${name}) on conflict (name) do nothing returning name`)

/** The id of the present epoch; null before the first worker. */
export const currentEpoch = (sql: Sql) => sql`(select id from epochs order by began_at desc, id limit 1)`
