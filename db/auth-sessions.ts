/** Sign-ins: who is signed in where, and whether still. */
import type { Sql } from './connection.ts'

/** For each pair of a user and a sign-in, in their order: is that sign-in alive and its account not disabled? */
export async function aliveAuthSessions(
  sql: Sql,
  asked: readonly { userId: string; authSessionId: string }[],
): Promise<boolean[]> {
  const rows = await sql<{ id: string; user_id: string }[]>`
    select s.id, s.user_id from auth_sessions s join users u on u.id = s.user_id
    where s.id = any(${asked.map((one) => one.authSessionId)}::uuid[]) and s.revoked_at is null and u.disabled_at is null`
  const owners = new Map(rows.map((row) => [row.id, row.user_id] as const))
  return asked.map(({ userId, authSessionId }) => owners.get(authSessionId) === userId)
}
