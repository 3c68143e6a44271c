/**
 * Text that only we can read, AES-256-GCM. What is sealed is bound to its place (whose it is, which field): moved into
 * another row it does not open. The key's id stands in front, so that several keys open while one is being replaced.
 * A keyed hash beside it finds a row by the text without opening any: without a key no guess can be tested against it.
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
  /** Sealed with a key that seals no more: seal it anew when it is written next. */
  readonly isStale: boolean
}

export interface Sealing {
  /** Of the key that seals. It stands behind the first dot of what that key sealed. */
  readonly keyId: string
  /** @param place whose text and which field this is: user, provider, field. */
  seal(text: string, place: readonly string[]): string
  /** Throws when it was not sealed by one of our keys, for this very place. */
  open(sealed: string, place: readonly string[]): Opened
  /** The hash to store beside the sealed text, by the key that seals. @param field keeps equal texts of different fields apart. */
  hash(text: string, field: string): Buffer
  /** The hashes that a row may have which was stored by any of our keys: the one of `hash` first. */
  hashes(text: string, field: string): readonly Buffer[]
}

/** Both parsed once, not for each token: they are used several times in a request. */
interface Keys {
  readonly sealing: KeyObject
  readonly hashing: KeyObject
}

/** @param keys at least one; the first seals, all of them open. */
export function createSealing(keys: readonly EncryptionKey[]): Sealing {
  const [current] = keys
  if (!current) throw new Error('there is no key to seal with')
  const keysById = new Map(keys.map(({ id, key }) => [id, keysFrom(Buffer.from(key, 'base64'))] as const))
  const currentKeys = keysById.get(current.id) as Keys

  return {
    keyId: current.id,
    seal: (text, place) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, currentKeys.sealing, nonce)
      cipher.setAAD(boundTo(current.id, place))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return ['v1', current.id, ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join(
        '.',
      )
    },
    open: (sealed, place) => {
      const [version, id = '', ...parts] = sealed.split('.')
      const [nonce, text, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
      const opening = keysById.get(id)
      if (version !== 'v1' || !nonce || !text || tag?.length !== tagBytes) throw new Error('this is not sealed text')
      if (!opening) throw new Error(`sealed with the key ${id}, which OAUTH_ENCRYPTION_KEY does not have`)
      const decipher = createDecipheriv(algorithm, opening.sealing, nonce, { authTagLength: tagBytes })
      decipher.setAAD(boundTo(id, place))
      decipher.setAuthTag(tag)
      return {
        text: Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8'),
        isStale: id !== current.id,
      }
    },
    hash: (text, field) => keyedHash(currentKeys.hashing, text, field),
    hashes: (text, field) => [...keysById.values()].map(({ hashing }) => keyedHash(hashing, text, field)),
  }
}

/** Two uses of one key are two keys (RFC 5869): what is learnt of one says nothing of the other. */
const keysFrom = (bytes: Buffer): Keys => ({
  sealing: createSecretKey(bytes),
  hashing: createSecretKey(Buffer.from(hkdfSync('sha256', bytes, '', 'relay-control-plane lookup hash v1', 32))),
})

const keyedHash = (key: KeyObject, text: string, field: string): Buffer =>
  createHmac('sha256', key)
    .update(JSON.stringify([field, text]))
    .digest()

/** Unambiguous whatever the parts hold. */
const boundTo = (keyId: string, place: readonly string[]): Buffer => Buffer.from(JSON.stringify([keyId, ...place]))
