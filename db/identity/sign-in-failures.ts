/** The number of failed sign-ins by minute, for the charts of operators. */
import type { Sql } from '../connection.ts'

/** Adds to the present minute. A crash of the database may lose the numbers of the last moments. */
export const countSignInFailures = async (sql: Sql, failures: number): Promise<void> => {
  await sql`
    insert into sign_in_failures as f (minute, failures)
    select date_trunc('minute', now()), ${failures} from set_config('synchronous_commit', 'off', true)
    on conflict (minute) do update set failures = least(f.failures::bigint + excluded.failures, 1000000000)`
}
