/**
 * What a relay needs to recognise the callers that it admits, and what it shows those that play. None of it admits a
 * caller by itself.
 */
import { hash, randomBytes } from 'node:crypto'
import { areEqualSecrets } from '../platform/equal-secrets.ts'
import { hashStreamToken, type StreamTokenHash } from '../platform/stream-token-hashes.ts'
import { type LossPicture, noLossPicture, readLossPicture } from './loss-picture.ts'

export interface Admission {
  /** By which the control plane finds out whether the relay has the present one; null for one without a number. */
  readonly revision: number | null
  readonly streamToken: StreamTokenHash
  /** Whether the stream token admits players too. */
  readonly canTokenPlay: boolean
  /** SHA-256 of the keys that admit players, in base64url. */
  readonly playKeys: readonly string[]
  readonly lossPicture: LossPicture
}

/** For a relay that has the hash of the stream token only, until the control plane sends the rest. */
export const admitToken = (streamToken: StreamTokenHash): Admission => ({
  revision: null,
  streamToken,
  canTokenPlay: true,
  playKeys: [],
  lossPicture: noLossPicture,
})

/** Of a control plane that sends the token itself. */
export const admitPlainToken = (token: string): Admission =>
  admitToken(hashStreamToken(token, randomBytes(32).toString('base64url')))

export const hashPlayKey = (key: string): string => hash('sha256', key, 'base64url')

export const hasStreamToken = (secret: string, { streamToken }: Admission): boolean =>
  areEqualSecrets(hashStreamToken(secret, streamToken.key).hash, streamToken.hash)

/** @returns the hash of the key; undefined when it is none of the relay. Compares with all of them. */
export function findPlayKey(secret: string, { playKeys }: Admission): string | undefined {
  const ofSecret = hashPlayKey(secret)
  return playKeys.filter((each) => areEqualSecrets(each, ofSecret)).at(0)
}

const isHash = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9_-]{43}$/.test(value)

/** Far more than an account can have. */
const playKeysMax = 1_000

/** @param value as the control plane sends it. @returns undefined for anything else. */
export function readAdmission(value: unknown): Admission | undefined {
  const fields = (value ?? {}) as Record<string, unknown>
  const { revision, stream_token, token_plays: canTokenPlay, play_keys } = fields
  const { key, hash: tokenHash } = (stream_token ?? {}) as Record<string, unknown>
  if (!Number.isSafeInteger(revision) || typeof canTokenPlay !== 'boolean') return undefined
  if (!isHash(key) || !isHash(tokenHash) || !Array.isArray(play_keys) || play_keys.length > playKeysMax)
    return undefined
  if (!play_keys.every(isHash)) return undefined
  return {
    revision: revision as number,
    streamToken: { key, hash: tokenHash },
    canTokenPlay,
    playKeys: play_keys,
    lossPicture: readLossPicture(fields),
  }
}
