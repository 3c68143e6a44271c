/**
 * Who signed a webhook: HMAC-SHA256 over its bytes as they came. The vendors' own verifiers take one secret, where ours
 * may be in rotation, turn the bytes into text first, which loses what is no UTF-8, and parse before they answer. The
 * tests hold these against what the vendors' helpers sign. Nothing here throws, whatever the headers say.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { WebhookDelivery } from './provider.ts'

/** How far the time of a signature may be from ours, either way. */
const toleranceSeconds = 300
/** More than this in one header is nobody's rotation. */
const signaturesMax = 20

/** Standard Webhooks 1.0. @param secrets `whsec_` and the key in base64. @param now milliseconds. */
export function isStandardWebhook(
  { headers, body }: WebhookDelivery,
  secrets: readonly string[],
  now: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || !/^[\x20-\x7e]{1,256}$/.test(id)) return false
  if (typeof timestamp !== 'string' || !isLately(timestamp, now) || typeof signatures !== 'string') return false
  const claimed = signatures.split(' ', signaturesMax).flatMap((one) => (one.startsWith('v1,') ? one.slice(3) : []))
  return secrets.some((secret) => isAmong(claimed, signStandardWebhook(secret, id, timestamp, body)))
}

/** The signature in base64, without the `v1,` before it. */
export const signStandardWebhook = (secret: string, id: string, timestamp: string, body: Buffer): string =>
  createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64')

/** Stripe's scheme `v1`. @param now milliseconds. */
export function isStripeWebhook({ headers, body }: WebhookDelivery, secrets: readonly string[], now: number): boolean {
  const header = headers['stripe-signature']
  if (typeof header !== 'string') return false
  const parts = header.split(',', signaturesMax)
  const told = (name: string) =>
    parts.flatMap((part) => (part.startsWith(`${name}=`) ? part.slice(name.length + 1) : []))
  const [timestamp, ...others] = told('t')
  if (timestamp === undefined || others.length > 0 || !isLately(timestamp, now)) return false
  return secrets.some((secret) =>
    isAmong(told('v1'), createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')),
  )
}

/** Lemon Squeezy signs the bytes alone, so its signatures never age. */
export function isLemonSqueezyWebhook({ headers, body }: WebhookDelivery, secrets: readonly string[]): boolean {
  const header = headers['x-signature']
  if (typeof header !== 'string') return false
  return secrets.some((secret) => isAmong([header], createHmac('sha256', secret).update(body).digest('hex')))
}

const isLately = (timestamp: string, now: number): boolean =>
  /^\d{1,12}$/.test(timestamp) && Math.abs(Math.floor(now / 1000) - Number(timestamp)) <= toleranceSeconds

/** The texts are compared, not what they decode to: decoding forgives what a signature should not be forgiven. */
function isAmong(claimed: readonly string[], expected: string): boolean {
  const right = Buffer.from(expected)
  return claimed.some((text) => {
    const bytes = Buffer.from(text)
    return bytes.length === right.length && timingSafeEqual(bytes, right)
  })
}
