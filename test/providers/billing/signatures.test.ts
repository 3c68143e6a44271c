/** The signatures of webhooks over their raw bytes. */
import { createHmac, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import type { WebhookDelivery } from '../../../providers/billing/provider.ts'
import { isLemonSqueezyWebhook, isStandardWebhook, isStripeWebhook } from '../../../providers/billing/signatures.ts'

const now = Date.parse('2026-03-01T12:00:00.500Z')
const text = '{"type": "subscription.activated", "name": "Zoë"}'
const stripe = new Stripe('sk_test_1')

interface Scheme {
  readonly header: string
  secret(): string
  /** With the vendor's own library, or as documented if it has none. */
  sign(secret: string, body: string, at?: number): WebhookDelivery
  verify(delivery: WebhookDelivery, secrets: readonly string[], now: number): boolean
}

const schemes: Readonly<Record<string, Scheme>> = {
  'Standard Webhooks': {
    header: 'webhook-signature',
    secret: () => `whsec_${randomBytes(32).toString('base64')}`,
    sign: (secret, body, at = now) => ({
      headers: {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(Math.floor(at / 1000)),
        'webhook-signature': new Webhook(secret).sign('msg_1', new Date(at), body),
      },
      body: Buffer.from(body),
    }),
    verify: isStandardWebhook,
  },
  Stripe: {
    header: 'stripe-signature',
    secret: () => `whsec_${randomBytes(24).toString('hex')}`,
    sign: (secret, payload, at = now) => {
      const timestamp = Math.floor(at / 1000)
      const header = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
      return { headers: { 'stripe-signature': header }, body: Buffer.from(payload) }
    },
    verify: isStripeWebhook,
  },
  'Lemon Squeezy': {
    header: 'x-signature',
    secret: () => randomBytes(20).toString('hex'),
    sign: (secret, body) => ({
      headers: { 'x-signature': createHmac('sha256', secret).update(body).digest('hex') },
      body: Buffer.from(body),
    }),
    verify: (delivery, secrets) => isLemonSqueezyWebhook(delivery, secrets),
  },
}

describe.each(Object.entries(schemes))('%s', (_name, { header, secret, sign, verify }) => {
  const [current, previous] = [secret(), secret()]
  const signed = sign(current, text)
  const withHeader = (value: string | string[] | undefined): WebhookDelivery => ({
    ...signed,
    headers: { ...signed.headers, [header]: value },
  })

  test('a signature with the secret is valid', () => {
    expect(verify(signed, [current], now)).toBe(true)
  })

  test('signatures with either of two secrets in rotation are valid, others are not', () => {
    expect(verify(signed, [previous, current], now)).toBe(true)
    expect(verify(sign(previous, text), [previous, current], now)).toBe(true)
    expect(verify(sign(secret(), text), [previous, current], now)).toBe(false)
    expect(verify(signed, [], now)).toBe(false)
  })

  test('a changed bit anywhere in the body is invalid', () => {
    for (let index = 0; index < signed.body.length; index += 1) {
      const body = Buffer.from(signed.body)
      body[index] = (body[index] ?? 0) ^ 1
      expect(verify({ ...signed, body }, [current], now)).toBe(false)
    }
  })

  test('the same JSON with other bytes is invalid', () => {
    const body = Buffer.from(JSON.stringify(JSON.parse(text)))
    expect(verify({ ...signed, body }, [current], now)).toBe(false)
  })

  test('other bytes that decode to the same text are invalid', () => {
    const [invalid, replaced] = [Buffer.from([0x22, 0xff, 0x22]), Buffer.from('"\ufffd"')]
    expect(invalid.toString()).toBe(replaced.toString())
    expect(verify({ ...sign(current, replaced.toString()), body: invalid }, [current], now)).toBe(false)
  })

  test('a missing, truncated, extended, malformed or repeated signature is invalid', () => {
    const value = String(signed.headers[header])
    const bad = ['', ' ', value.slice(0, -1), `${value}0`, value.replace(/.{4}$/, 'zzzz'), 'v1,', 't=,v1=', '\0', '💶']
    for (const claimed of [undefined, [value, value], [], 'x'.repeat(1_000_000), ...bad])
      expect(verify(withHeader(claimed), [current], now)).toBe(false)
  })

  test('random headers are invalid and do not throw', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (claimed) => {
        expect(verify(withHeader(claimed), [current], now)).toBe(false)
      }),
      { numRuns: 300 },
    )
  })
})

test.each(['Standard Webhooks', 'Stripe'])(
  'a signature of %s is valid for five minutes before and after its timestamp',
  (name) => {
    const { secret, sign, verify } = schemes[name] as Scheme
    const current = secret()
    for (const [seconds, isValid] of [
      [-300, true],
      [300, true],
      [-301, false],
      [301, false],
    ] as const)
      expect(verify(sign(current, text, now + seconds * 1000), [current], now)).toBe(isValid)
  },
)

const standard = schemes['Standard Webhooks'] as Scheme
const secret = standard.secret()
const delivery = standard.sign(secret, text)

test('one valid signature among several is enough', () => {
  const several = `v1a,${'A'.repeat(44)} v1,${'A'.repeat(43)}= ${delivery.headers['webhook-signature']}`
  const headers = { ...delivery.headers, 'webhook-signature': several }
  expect(isStandardWebhook({ ...delivery, headers }, [secret], now)).toBe(true)
})

test.each([
  ['missing', undefined],
  ['empty', ''],
  ['longer than 256 characters', 'x'.repeat(257)],
  ['not ASCII', 'é'],
  ['not printable', 'a\tb'],
  ['of another webhook', 'msg_2'],
])('a webhook-id that is %s is invalid', (_what, id) => {
  const signature = id && new Webhook(secret).sign(id === 'msg_2' ? 'msg_1' : id, new Date(now), text)
  const headers = { ...delivery.headers, 'webhook-id': id, ...(signature && { 'webhook-signature': signature }) }
  expect(isStandardWebhook({ ...delivery, headers }, [secret], now)).toBe(false)
})

test.each([undefined, '', ' 1', '1e9', '-1', 'now', '99999999999999', '1772366400.5'])(
  'the timestamp %j is invalid',
  (timestamp) => {
    const headers = { ...delivery.headers, 'webhook-timestamp': timestamp }
    expect(isStandardWebhook({ ...delivery, headers }, [secret], now)).toBe(false)
  },
)

test('one valid v1 signature in the header of Stripe is enough, other schemes are ignored', () => {
  const right = /v1=(\w+)/.exec(String((schemes.Stripe as Scheme).sign(secret, text).headers['stripe-signature']))?.[1]
  const at = `t=${Math.floor(now / 1000)}`
  const verify = (header: string) =>
    isStripeWebhook({ headers: { 'stripe-signature': header }, body: Buffer.from(text) }, [secret], now)
  expect(verify(`${at},v1=${'0'.repeat(64)},v1=${right}`)).toBe(true)
  expect(verify(`${at},v0=${right}`)).toBe(false)
  expect(verify(`${at},t=1,v1=${right}`)).toBe(false)
  expect(verify(`v1=${right}`)).toBe(false)
})
