/** A database whose `now()` a test sets, so that hours of reports take seconds. */
import type { Database, Sql } from '../../../db/connection.ts'

/** Adds what {@link setTime} needs. */
export async function addSimulatedClock(sql: Database): Promise<void> {
  await sql`create schema simulated`
  await sql`
    create function simulated.now() returns timestamptz stable language sql
      as $$ select to_timestamp(current_setting('simulated.now')::float8) $$`
}

/** Sets the time of a transaction, in seconds since 1970. */
export async function setTime(tx: Sql, seconds: number): Promise<void> {
  await tx`
    select set_config('search_path', 'simulated, pg_catalog, public', true),
      set_config('simulated.now', ${String(seconds)}, true)`
}
