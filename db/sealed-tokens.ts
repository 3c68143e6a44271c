/**
 * Tokens that the API shows to their owner repeatedly, so a hash is not enough: stream tokens, play keys and the two
 * tokens of a live relay session. They are stored encrypted, each with a keyed hash for lookups and comparisons.
 */
import type { Sealing } from '../platform/sealing.ts'
import { hashStreamToken, type StreamTokenHash } from '../platform/stream-token-hashes.ts'

export interface SealedToken {
  readonly sealed: string
  readonly hash: Buffer
}

/** Of an account's row. */
export interface StoredStreamToken {
  streamTokenSealed: string
}

/** Of a session's row. Both are null once it has stopped. */
export interface StoredSessionTokens {
  id: string
  pairTokenSealed: string | null
  relayWsTokenSealed: string | null
}

/** Of a play key's row. */
export interface StoredPlayKey {
  readonly id: string
  readonly keySealed: string
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

/** Throws if the token was encrypted with an unknown key. */
export const openStreamToken = (sealing: Sealing, userId: string, stored: StoredStreamToken): string =>
  sealing.openOften(stored.streamTokenSealed, streamTokenPlace(userId))

/** The stream token as the relay of a session gets it. Throws if the token was encrypted with an unknown key. */
export const hashRelayStreamToken = (
  sealing: Sealing,
  { sessionId, userId }: { readonly sessionId: string; readonly userId: string },
  stored: StoredStreamToken,
): StreamTokenHash =>
  hashStreamToken(
    openStreamToken(sealing, userId, stored),
    sealing.hash(sessionId, 'relay_stream_token_key').toString('base64url'),
  )

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
  const sealed = field === 'pair_token' ? row.pairTokenSealed : row.relayWsTokenSealed
  return sealed === null ? null : sealing.openOften(sealed, [row.id, field])
}

/** @param id that of the key's row. */
export const sealPlayKey = (sealing: Sealing, id: string, key: string): string => sealing.seal(key, [id, 'play_key'])

/** Throws if the key was encrypted with an unknown key. */
export const openPlayKey = (sealing: Sealing, { id, keySealed }: StoredPlayKey): string =>
  sealing.openOften(keySealed, [id, 'play_key'])
