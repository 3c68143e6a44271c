/**
 * Tokens that the API shows to their owner repeatedly, so a hash is not enough: stream tokens and the two tokens of a live relay
 * session. They are stored encrypted, each with a keyed hash for lookups and comparisons. Rows written by an older version
 * contain plain text until the job `reseal_secrets` has encrypted it, so both are read.
 */
import type { Sealing } from '../platform/sealing.ts'

export interface SealedToken {
  readonly sealed: string
  readonly hash: Buffer
}

/** The columns of an account's row; one of the two is null. */
export interface StoredStreamToken {
  streamToken: string | null
  streamTokenSealed: string | null
}

/** The columns of a session's row. Per token one of the two is null; both are null in a stopped session. */
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

/** The hash of the token with each key, since a row may have been written with a previous key. */
export const streamTokenHashes = (sealing: Sealing, token: string): readonly Buffer[] =>
  sealing.hashes(token, streamTokenField)

/** Throws if the row contains no token, or one that was encrypted with an unknown key. */
export function openStreamToken(sealing: Sealing, userId: string, stored: StoredStreamToken): string {
  if (stored.streamTokenSealed !== null) return sealing.openOften(stored.streamTokenSealed, streamTokenPlace(userId))
  if (stored.streamToken === null) throw new Error('the account has no stream token')
  return stored.streamToken
}

export const sealSessionToken = (
  sealing: Sealing,
  sessionId: string,
  field: SessionTokenField,
  token: string,
): SealedToken => ({ sealed: sealing.seal(token, [sessionId, field]), hash: sealing.hash(token, field) })

/** The hash of the token with each key, since a row may have been written with a previous key. */
export const sessionTokenHashes = (sealing: Sealing, field: SessionTokenField, token: string): readonly Buffer[] =>
  sealing.hashes(token, field)

/** Null for a stopped session. Throws if the token was encrypted with an unknown key. */
export function openSessionToken(sealing: Sealing, row: StoredSessionTokens, field: SessionTokenField): string | null {
  const [sealed, plain] =
    field === 'pair_token' ? [row.pairTokenSealed, row.pairToken] : [row.relayWsTokenSealed, row.relayWsToken]
  return sealed === null ? plain : sealing.openOften(sealed, [row.id, field])
}
