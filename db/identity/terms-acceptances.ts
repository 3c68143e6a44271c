/** Which versions of the terms accounts have accepted. */
import type { Sql } from '../connection.ts'

/** Does nothing without a version, and keeps the time of the first acceptance. */
export const recordTermsAcceptance = async (sql: Sql, userId: string, version: string | undefined): Promise<void> => {
  if (version === undefined) return
  await sql`insert into terms_acceptances (user_id, version) values (${userId}, ${version}) on conflict do nothing`
}
