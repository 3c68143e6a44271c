/**
 * Tokens that their owner is shown again, so that a hash alone can't keep them: stream tokens, and the two of a live relay
 * session. Rows hold them sealed, with a keyed hash beside each to find and compare them by. Code writes nothing else; a row
 * of an older version has its token in plain text until `reseal_secrets` has sealed it, so both are read.
 */
import type { Sealing } from '../platform/sealing.ts'

export interface SealedToken {
  readonly sealed: string
  readonly hash: Buffer
}

/** As an account's row stores it: in one of the two. */
export interface StoredStreamToken {
  streamToken: string | null
  streamTokenSealed: string | null
}

/** As a session's row stores them: each in one of its two, or in none when the session is stopped. */
export interface StoredSessionTokens {
  id: string
  pairToken: string | null
  pairTokenSealed: string | null
  relayWsToken: string | null
  relayWsTokenSealed: string | null
}

export type SessionTokenField = 'pair_token' | 'relay_ws_token'

const streamTokenField = 'stream_token'
const streamTokenPlace = (userId: string) => [userId, streamTokenField]

export const sealStreamToken = (sealing: Sealing, userId: string, token: string): SealedToken => ({
  sealed: sealing.seal(token, streamTokenPlace(userId)),
  hash: sealing.hash(token, streamTokenField),
})

/** The hashes under which an account may have this stream token, whichever key stored it. */
export const streamTokenHashes = (sealing: Sealing, token: string): readonly Buffer[] =>
  sealing.hashes(token, streamTokenField)

/** Throws when the row has none, or one that none of our keys has sealed. */
export function openStreamToken(sealing: Sealing, userId: string, stored: StoredStreamToken): string {
  if (stored.streamTokenSealed !== null) return sealing.open(stored.streamTokenSealed, streamTokenPlace(userId)).text
  if (stored.streamToken === null) throw new Error('an account has no stream token')
  return stored.streamToken
}

export const sealSessionToken = (
  sealing: Sealing,
  sessionId: string,
  field: SessionTokenField,
  token: string,
): SealedToken => ({ sealed: sealing.seal(token, [sessionId, field]), hash: sealing.hash(token, field) })

/** Null for a stopped session. Throws when none of our keys has sealed it. */
export function openSessionToken(sealing: Sealing, row: StoredSessionTokens, field: SessionTokenField): string | null {
  const [sealed, plain] =
    field === 'pair_token' ? [row.pairTokenSealed, row.pairToken] : [row.relayWsTokenSealed, row.relayWsToken]
  return sealed === null ? plain : sealing.open(sealed, [row.id, field]).text
}
