/**
 * Encrypts text for storage with AES-256-GCM. A sealed text is bound to its place (owner and field), so it cannot be
 * opened after it was copied to another row. It starts with the id of its key, so that several keys can open texts
 * during a rotation. A keyed hash finds a row by its text without opening it. Guesses cannot be tested against the hash
 * without the key.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import type { EncryptionKey } from './config/values.ts'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export interface Opened {
  readonly text: string
  /** Whether it was sealed with an earlier key. Seal it again at the next write. */
  readonly isStale: boolean
}

export interface Sealing {
  /** The id of the key that seals. It follows the first dot of a sealed text. */
  readonly keyId: string
  /** @param place the owner and the field of the text: user, provider, field. */
  seal(text: string, place: readonly string[]): string
  /** Throws unless it was sealed with one of the keys for the same place. */
  open(sealed: string, place: readonly string[]): Opened
  /**
   * The text, as `open` returns it, for texts that are read with many requests. Keeps up to {@link openedMax}
   * of them in memory. A row that is sealed again or revoked has another sealed text, so a kept one is never stale.
   */
  openOften(sealed: string, place: readonly string[]): string
  /**
   * The hash to store with the sealed text, by the key that seals.
   * @param field makes equal texts of different fields differ.
   */
  hash(text: string, field: string): Buffer
  /**
   * The hashes of a text by all keys, that of `hash` first. Rows that were stored with an earlier key have one of the
   * others.
   */
  hashes(text: string, field: string): readonly Buffer[]
}

/** The tokens of ten thousand live sessions and of their owners, at about 400 bytes each. */
export const openedMax = 30_000

/** Parsed once, since they are used several times per request. */
interface Keys {
  readonly sealing: KeyObject
  readonly hashing: KeyObject
}

/** @param keys at least one. The first one seals, and all of them open. */
export function createSealing(keys: readonly EncryptionKey[]): Sealing {
  const [current] = keys
  if (!current) throw new Error('no encryption key')
  const keysById = new Map(keys.map(({ id, key }) => [id, deriveKeys(Buffer.from(key, 'base64'))] as const))
  const currentKeys = keysById.get(current.id) as Keys

  const open: Sealing['open'] = (sealed, place) => {
    const [version, id = '', ...parts] = sealed.split('.')
    const [nonce, text, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
    const openingKeys = keysById.get(id)
    if (version !== 'v1' || !nonce || !text || tag?.length !== tagBytes) throw new Error('the text is not sealed')
    if (!openingKeys)
      throw new Error(`the text is sealed with the key ${id}, which is missing from OAUTH_ENCRYPTION_KEY`)
    const decipher = createDecipheriv(algorithm, openingKeys.sealing, nonce, { authTagLength: tagBytes })
    decipher.setAAD(associatedData(id, place))
    decipher.setAuthTag(tag)
    return {
      text: Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8'),
      isStale: id !== current.id,
    }
  }

  const opened = new Map<string, { readonly place: readonly string[]; readonly text: string }>()

  return {
    keyId: current.id,
    seal: (text, place) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, currentKeys.sealing, nonce)
      cipher.setAAD(associatedData(current.id, place))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return ['v1', current.id, ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join(
        '.',
      )
    },
    open,
    openOften: (sealed, place) => {
      const kept = opened.get(sealed)
      if (kept && isSamePlace(kept.place, place)) return kept.text
      const { text } = open(sealed, place)
      const oldest = opened.size >= openedMax ? opened.keys().next().value : undefined
      if (oldest !== undefined) opened.delete(oldest)
      opened.set(sealed, { place, text })
      return text
    },
    hash: (text, field) => keyedHash(currentKeys.hashing, text, field),
    hashes: (text, field) => [...keysById.values()].map(({ hashing }) => keyedHash(hashing, text, field)),
  }
}

/** Derives a second key for hashing (RFC 5869), so that neither use reveals anything about the other. */
const deriveKeys = (bytes: Buffer): Keys => ({
  sealing: createSecretKey(bytes),
  hashing: createSecretKey(Buffer.from(hkdfSync('sha256', bytes, '', 'relay-control-plane lookup hash v1', 32))),
})

const isSamePlace = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((part, index) => part === b[index])

const keyedHash = (key: KeyObject, text: string, field: string): Buffer =>
  createHmac('sha256', key)
    .update(JSON.stringify([field, text]))
    .digest()

/** JSON, since it is unambiguous for any content of the parts. */
const associatedData = (keyId: string, place: readonly string[]): Buffer =>
  Buffer.from(JSON.stringify([keyId, ...place]))
