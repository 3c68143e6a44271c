/**
 * Keyed hashes of stream tokens, by which relays recognise a token without having it. The API issues them with a key
 * for each session.
 */
import { createHmac } from 'node:crypto'

/** Both are 32 bytes in base64url. */
export interface StreamTokenHash {
  readonly key: string
  readonly hash: string
}

/** @param key 32 bytes in base64url. */
export const hashStreamToken = (token: string, key: string): StreamTokenHash => ({
  key,
  hash: createHmac('sha256', Buffer.from(key, 'base64url')).update(token).digest('base64url'),
})

/** As a relay gets it with its start: the key, a dot, and the hash. */
export const formatStreamTokenHash = ({ key, hash }: StreamTokenHash): string => `${key}.${hash}`

/** @returns undefined for any other text. */
export function parseStreamTokenHash(text: string): StreamTokenHash | undefined {
  const { key, hash } = /^(?<key>[\w-]{43})\.(?<hash>[\w-]{43})$/.exec(text)?.groups ?? {}
  return key === undefined || hash === undefined ? undefined : { key, hash }
}
