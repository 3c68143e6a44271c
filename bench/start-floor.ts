/**
 * The start of the floor: what a start has to lock, check and write, without the product. It is written here, so that
 * no change of the service changes its floor, and sent in two round trips like the service's own: with more of them the
 * floor would be the slower one, and its ratio would hide what the service adds.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Database, Sql } from '../db/connection.ts'

export interface FloorStart {
  readonly userId: string
  readonly authSessionId: string
  readonly idempotencyKey: string
  readonly connectionId: string
  readonly region: string
  readonly capacity: number
  readonly relaysMax: number
  readonly requestsMax: number
}

/** @returns the new session. Throws when the start would be refused. */
export async function startOnFloor(sql: Database, start: FloorStart): Promise<object> {
  const tx = await sql.reserve()
  try {
    // Postgres executes them in this order. The places are counted after the wait for the lock.
    const [, , [checked], [window], , [region]] = await Promise.all([
      tx`begin`,
      tx`select from users where id = ${start.userId} for no key update`,
      tx<Checked[]>`
        select plan_status = 'active' and relay_access_enabled and disabled_at is null as has_access,
          exists (
            select from auth_sessions where id = ${start.authSessionId} and user_id = users.id and revoked_at is null
          ) as is_signed_in,
          exists (
            select from idempotency_keys where user_id = users.id and key = ${start.idempotencyKey}
          ) as is_repeated,
          (select count(*)::int from relay_sessions where user_id = users.id and state <> 'stopped') as relays
        from users where id = ${start.userId}`,
      tx<{ requests: number }[]>`
        insert into rate_limit_windows as w (key, opened_at, requests) values (${`start:${start.userId}`}, now(), 1)
        on conflict (key) do update set requests = w.requests + 1 returning requests`,
      tx`select pg_advisory_xact_lock(hashtextextended(${start.region}, 0))`,
      tx<{ sessions: number }[]>`
        select count(*)::int as sessions from relay_sessions where region = ${start.region} and state <> 'stopped'`,
    ])
    if (!checked?.hasAccess || !checked.isSignedIn || checked.isRepeated) throw new Error('the start is not admitted')
    if (!window || window.requests > start.requestsMax) throw new Error('too many requests')
    if (checked.relays >= start.relaysMax) throw new Error('all relays of the plan are in use')
    if (!region || region.sessions >= start.capacity) throw new Error('the region is full')
    const sessionId = randomUUID()
    const [[session]] = await Promise.all([
      insertSession(tx, sessionId, start),
      tx`
        insert into idempotency_keys (user_id, key, request_hash, session_id)
        values (${start.userId}, ${start.idempotencyKey}, ${Buffer.alloc(32)}, ${sessionId})`,
      tx`commit`,
    ])
    return session ?? {}
  } catch (error) {
    await tx`rollback`
    throw error
  } finally {
    tx.release()
  }
}

interface Checked {
  readonly hasAccess: boolean
  readonly isSignedIn: boolean
  readonly isRepeated: boolean
  readonly relays: number
}

function insertSession(tx: Sql, sessionId: string, { userId, connectionId, region }: FloorStart) {
  const [pair, socket] = [randomToken(), randomToken()]
  return tx`
    insert into relay_sessions (id, user_id, connection_id, region, command_initiator, pair_token_sealed, pair_token_hash,
      relay_ws_token_sealed, relay_ws_token_hash)
    values (${sessionId}, ${userId}, ${connectionId}, ${region}, 'user', ${pair.text}, ${pair.hash}, ${socket.text}, ${socket.hash})
    returning id, connection_id, region, state, created_at`
}

function randomToken(): { readonly text: string; readonly hash: Buffer } {
  const text = randomBytes(24).toString('base64url')
  return { text, hash: createHash('sha256').update(text).digest() }
}
