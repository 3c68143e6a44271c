/** What relays need to recognise the callers that they admit. */

import type { OnLoss } from '../domain/relay/on-loss.ts'
import { readStreamFormat, type StreamFormat, showStreamFormat } from '../domain/relay/stream-format.ts'
import type { Sealing } from '../platform/sealing.ts'
import type { StreamTokenHash } from '../platform/stream-token-hashes.ts'
import { first, type Sql } from './connection.ts'
import { hashRelayStreamToken, type StoredStreamToken } from './sealed-tokens.ts'

/** Of the row of a session and that of its account. */
export interface AdmissionColumns extends StoredStreamToken {
  admissionRevision: number
  canTokenPlay: boolean
  /** SHA-256 of the keys that open the relay, in hexadecimal digits. */
  playKeyHashes: readonly string[]
  /** Null when the connection was deleted. */
  onLoss: OnLoss | null
  /** The digest of the connection's image; null for none. */
  slate: string | null
  /** As it is stored; null before a relay has reported it. */
  streamFormat: unknown
}

/**
 * The columns of {@link AdmissionColumns}; null for a missing session.
 * @param s the alias of the session, `u` that of its account.
 */
export const admissionColumns = (sql: Sql) => sql`
  s.admission_revision::float8 as admission_revision, u.stream_token_sealed, not u.play_with_keys_only as can_token_play,
  array(select encode(k.key_hash, 'hex') from play_keys k where k.user_id = s.user_id
    and (k.connection_id is null or k.connection_id = s.connection_id) order by k.id) as play_key_hashes,
  (select c.on_loss from connections c where c.user_id = s.user_id and c.name = s.connection_id) as on_loss,
  (select l.digest from connections c join slates l on l.connection_label = c.label
    where c.user_id = s.user_id and c.name = s.connection_id) as slate,
  s.stream_format`

export interface RelayAdmission {
  readonly revision: number
  readonly streamToken: StreamTokenHash
  readonly canTokenPlay: boolean
  /** SHA-256 of the play keys, in base64url. */
  readonly playKeys: readonly string[]
  readonly onLoss: OnLoss
  /** The digest of the connection's own image; null for none. */
  readonly slate: string | null
  /** The last one that a relay of the session has reported; null before. */
  readonly streamFormat: StreamFormat | null
}

/** Throws if the stream token was encrypted with an unknown key. */
export const toRelayAdmission = (
  sealing: Sealing,
  { sessionId, userId }: { readonly sessionId: string; readonly userId: string },
  row: AdmissionColumns,
): RelayAdmission => ({
  revision: row.admissionRevision,
  streamToken: hashRelayStreamToken(sealing, { sessionId, userId }, row),
  canTokenPlay: row.canTokenPlay,
  playKeys: row.playKeyHashes.map((hash) => Buffer.from(hash, 'hex').toString('base64url')),
  onLoss: row.onLoss ?? 'hold',
  slate: row.slate,
  streamFormat: readStreamFormat(row.streamFormat) ?? null,
})

/** What the relay of a live session admits by at present. Its revision is not newer than the rest. */
export async function findRelayAdmission(
  sql: Sql,
  sealing: Sealing,
  sessionId: string,
): Promise<RelayAdmission | undefined> {
  const row = await first(sql<(AdmissionColumns & { userId: string })[]>`
    select s.user_id, ${admissionColumns(sql)} from relay_sessions s join users u on u.id = s.user_id
    where s.id = ${sessionId} and s.state <> 'stopped'`)
  return row && toRelayAdmission(sealing, { sessionId, userId: row.userId }, row)
}

/** Stores that players use these keys, to the minute. @param hashes in base64url; unknown ones are ignored. */
export const recordPlayKeyUse = async (sql: Sql, sessionId: string, hashes: readonly string[]): Promise<void> => {
  await sql`
    update play_keys k set last_used_at = now() from relay_sessions s
    where s.id = ${sessionId} and k.user_id = s.user_id
      and encode(k.key_hash, 'hex') = any(${hashes.map((hash) => Buffer.from(hash, 'base64url').toString('hex'))}::text[])
      and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute')`
}

/** Stores the format of a session's stream. A report that states the same again writes nothing. */
export const recordStreamFormat = async (sql: Sql, sessionId: string, format: StreamFormat): Promise<void> => {
  const text = JSON.stringify(showStreamFormat(format))
  await sql`
    update relay_sessions set stream_format = ${text}::text::jsonb
    where id = ${sessionId} and stream_format is distinct from ${text}::text::jsonb`
}
