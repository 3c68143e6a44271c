/**
 * Verifies webhook signatures: HMAC-SHA256 over the bytes as received. The vendors' own verifiers accept a single
 * secret, decode the bytes as text first, which changes invalid UTF-8, and parse the body before they answer. The tests
 * compare these functions with signatures that the vendors' libraries make. None of them throws, whatever the headers
 * contain.
 */

import { createHmac } from 'node:crypto'
import { areEqualSecrets } from '../../platform/equal-secrets.ts'
import type { WebhookDelivery } from './provider.ts'

/** How far the timestamp of a signature may be from the present, in both directions. */
const toleranceSeconds = 300
/** A header contains one signature for each secret in rotation; more than this many are not examined. */
const signaturesMax = 20

/** Standard Webhooks 1.0. @param secrets `whsec_` and the key in base64. @param now milliseconds since 1970. */
export function isStandardWebhook(
  { headers, body }: WebhookDelivery,
  secrets: readonly string[],
  now: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': header } = headers
  if (typeof id !== 'string' || !/^[\x20-\x7e]{1,256}$/.test(id)) return false
  if (typeof timestamp !== 'string' || !isRecent(timestamp, now) || typeof header !== 'string') return false
  const signatures = header
    .split(' ', signaturesMax)
    .flatMap((signature) => (signature.startsWith('v1,') ? signature.slice(3) : []))
  return secrets.some((secret) => includesSignature(signatures, signStandardWebhook(secret, id, timestamp, body)))
}

/** The signature in base64, without the prefix `v1,`. */
export const signStandardWebhook = (secret: string, id: string, timestamp: string, body: Buffer): string =>
  createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64')

/** Stripe's scheme `v1`. @param now milliseconds since 1970. */
export function isStripeWebhook({ headers, body }: WebhookDelivery, secrets: readonly string[], now: number): boolean {
  const header = headers['stripe-signature']
  if (typeof header !== 'string') return false
  const parts = header.split(',', signaturesMax)
  const valuesOf = (name: string) =>
    parts.flatMap((part) => (part.startsWith(`${name}=`) ? part.slice(name.length + 1) : []))
  const [timestamp, ...others] = valuesOf('t')
  if (timestamp === undefined || others.length > 0 || !isRecent(timestamp, now)) return false
  return secrets.some((secret) =>
    includesSignature(valuesOf('v1'), createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')),
  )
}

/** Lemon Squeezy signs only the bytes, without a timestamp: its signatures do not expire. */
export function isLemonSqueezyWebhook({ headers, body }: WebhookDelivery, secrets: readonly string[]): boolean {
  const header = headers['x-signature']
  if (typeof header !== 'string') return false
  return secrets.some((secret) => includesSignature([header], createHmac('sha256', secret).update(body).digest('hex')))
}

const isRecent = (timestamp: string, now: number): boolean =>
  /^\d{1,12}$/.test(timestamp) && Math.abs(Math.floor(now / 1000) - Number(timestamp)) <= toleranceSeconds

/** Compares the encoded texts: decoding base64 or hex would accept several spellings of one signature. */
const includesSignature = (signatures: readonly string[], expected: string): boolean =>
  signatures.some((text) => areEqualSecrets(text, expected))
