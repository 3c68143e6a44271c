/**
 * The secret of each instance, which it sends as `X-Relay-Auth`:
 * `<instance id>.<HMAC-SHA256 of the id under a master secret>`. It is derived, so nothing is stored, and a leaked one
 * speaks for its own instance only.
 */

import { createHmac, hash, randomBytes } from 'node:crypto'
import { areEqualSecrets } from '../../platform/equal-secrets.ts'

/** A new id, which also names the instance at its provider: `aws-0123456789abcdef`. */
export const createInstanceId = (provider: string): string => `${provider}-${randomBytes(8).toString('hex')}`

export const instanceSecret = (masterSecret: string, instanceId: string): string =>
  `${instanceId}.${createHmac('sha256', masterSecret).update(`relay-instance:${instanceId}`).digest('hex')}`

/**
 * `master`: the holder of a master secret speaks for any instance. Otherwise the instance that the secret belongs to.
 */
export type RelayCaller = 'master' | { readonly instanceId: string }

/** @returns undefined for a secret that is neither a master secret nor derived from one. */
export function verifyRelaySecret(presented: string, masterSecrets: readonly string[]): RelayCaller | undefined {
  if (masterSecrets.some((secret) => areEqualSecrets(presented, secret))) return 'master'
  const instanceId = presented.slice(0, Math.max(0, presented.lastIndexOf('.')))
  if (!/^[\w.-]{1,64}$/.test(instanceId)) return undefined
  return masterSecrets.some((secret) => areEqualSecrets(presented, instanceSecret(secret, instanceId)))
    ? { instanceId }
    : undefined
}

/** Above the number of instances that report to one process. */
const verifiedMax = 10_000

/**
 * Like {@link verifyRelaySecret}, and remembers the secrets that it accepted: relays send theirs with each health
 * report. Secrets are stored as digests only, and the one that was verified first is forgotten first.
 */
export function createRelaySecretVerifier(
  masterSecrets: readonly string[],
): (presented: string) => RelayCaller | undefined {
  const verified = new Map<string, RelayCaller>()
  return (presented) => {
    const key = hash('sha256', presented)
    const known = verified.get(key)
    if (known) return known
    const caller = verifyRelaySecret(presented, masterSecrets)
    if (!caller) return undefined
    const [oldest] = verified.keys()
    if (verified.size >= verifiedMax && oldest !== undefined) verified.delete(oldest)
    verified.set(key, caller)
    return caller
  }
}
