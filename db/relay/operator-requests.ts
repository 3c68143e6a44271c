/** Operators' requests for transitions, recorded on the session's row until they are carried out or withdrawn. */
import { hasRow, type Sql } from '../connection.ts'
import type { RelaySessionRow } from './sessions.ts'

interface OperatorRequest {
  readonly id: string
  readonly ip: string
  /** What the owner of the session may read. */
  readonly publicReason?: string
}

/** Records an operator's request for a transition of a live session. It replaces an earlier request. */
export const recordOperatorRequest = async (sql: Sql, sessionId: string, request: OperatorRequest): Promise<void> => {
  await sql`
    update relay_sessions set operator_request = ${sql.json({ ...request })} where id = ${sessionId} and state <> 'stopped'`
}

/**
 * Withdraws a request. @returns true when it was still recorded, so its transition will not happen; false when the
 * transition has happened or another request replaced it.
 */
export const withdrawOperatorRequest = async (sql: Sql, sessionId: string, requestId: string): Promise<boolean> =>
  hasRow(sql`
    update relay_sessions set operator_request = null where id = ${sessionId} and operator_request ->> 'id' = ${requestId}`)

/** Whether the request's transition has happened: its audit entry is written in the same transaction. */
export const isOperatorRequestDone = async (
  sql: Sql,
  { userId }: Pick<RelaySessionRow, 'userId'>,
  requestId: string,
): Promise<boolean> =>
  hasRow(sql`
    select from audit_entries
    where user_id = ${userId} and action = 'session_transitioned' and detail ->> 'request_id' = ${requestId}`)
