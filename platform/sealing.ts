/**
 * Text that only we can read, AES-256-GCM. What is sealed is bound to its place (whose it is, which field): moved into
 * another row it does not open. The key's id stands in front, so that several keys open while one is being replaced.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { EncryptionKey } from './config-values.ts'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export interface Opened {
  readonly text: string
  /** Sealed with a key that seals no more: seal it anew when it is written next. */
  readonly isStale: boolean
}

export interface Sealing {
  /** @param place whose text and which field this is: user, provider, field. */
  seal(text: string, place: readonly string[]): string
  /** Throws when it was not sealed by one of our keys, for this very place. */
  open(sealed: string, place: readonly string[]): Opened
}

/** @param keys at least one; the first seals, all of them open. */
export function createSealing(keys: readonly EncryptionKey[]): Sealing {
  const [current] = keys
  if (!current) throw new Error('there is no key to seal with')
  const bytesOf = new Map(keys.map(({ id, key }) => [id, Buffer.from(key, 'base64')] as const))

  return {
    seal: (text, place) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, bytesOf.get(current.id) as Buffer, nonce)
      cipher.setAAD(boundTo(current.id, place))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return ['v1', current.id, ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join(
        '.',
      )
    },
    open: (sealed, place) => {
      const [version, id = '', ...parts] = sealed.split('.')
      const [nonce, text, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
      const key = bytesOf.get(id)
      if (version !== 'v1' || !nonce || !text || tag?.length !== tagBytes) throw new Error('this is not sealed text')
      if (!key) throw new Error(`sealed with the key ${id}, which OAUTH_ENCRYPTION_KEY does not have`)
      const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
      decipher.setAAD(boundTo(id, place))
      decipher.setAuthTag(tag)
      return {
        text: Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8'),
        isStale: id !== current.id,
      }
    },
  }
}

/** Unambiguous whatever the parts hold. */
const boundTo = (keyId: string, place: readonly string[]): Buffer => Buffer.from(JSON.stringify([keyId, ...place]))
