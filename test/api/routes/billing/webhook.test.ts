/** Signed webhooks: they are stored once, and their account gets what they state. */
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { maskEmail } from '../../../../domain/identity/masked-email.ts'
import {
  type BillingEventBody,
  billingEvent,
  type EventView,
  findEvent,
  rawWebhook,
  type SandboxSender,
  sandboxSender,
  signedHeaders,
} from '../../../support/billing.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { eventually, type TestService } from '../../../support/relays.ts'

const secretOf = () => `whsec_${randomBytes(32).toString('base64')}`
const [newSecret, oldSecret] = [secretOf(), secretOf()]
const took = [200, { received: true }]

let service: TestService
let provider: SandboxSender
beforeAll(async () => {
  service = await startFakeRelayService({
    variables: { SVC_BILLING_WEBHOOK_SECRET: `${newSecret},${oldSecret}` },
  })
  provider = sandboxSender(service.api)
})

const sendEvent = async (event: BillingEventBody | string | Buffer, id: string = randomUUID()) => {
  const { status, body } = await provider.send(event, { id })
  return { answer: [status, body], id }
}

/** Sends an event, expects it to be accepted, and returns its stored form. */
const acceptEvent = async (event: BillingEventBody | string | Buffer): Promise<EventView> => {
  const { answer, id } = await sendEvent(event)
  expect(answer).toEqual(took)
  const seen = await findEvent(service.api, id)
  if (!seen) throw new Error('accepted, but missing in the list of operators')
  return seen
}

const untilApplied = (id: string) =>
  eventually(
    () => findEvent(service.api, id),
    (event) => event?.status === 'applied',
  )

const entitlementOf = async (bearer: string) =>
  (await service.api.get<{ entitlement: Record<string, unknown> }>('/auth/session', { bearer })).body.entitlement

const rowsOf = async (id: string) => (await service.api.sql`select from billing_events where event_key = ${id}`).length

describe('a signed webhook', () => {
  test('is stored, listed for operators, and gives its account the paid tier', async () => {
    const user = await service.api.given.user()
    const at = '2026-03-01T10:00:00.000Z'
    const { answer, id } = await sendEvent(
      billingEvent(
        'subscription.activated',
        { user_id: user.userId, period_end: '2036-03-01T10:00:00Z' },
        new Date(at),
      ),
    )
    expect(answer).toEqual(took)
    const event = await untilApplied(id)
    expect(event).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      event_key: id,
      provider: 'sandbox',
      type: 'subscription.activated',
      action: 'activate',
      user_id: user.userId,
      masked_email: maskEmail(user.email),
      status: 'applied',
      received_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      occurred_at: at,
      error: null,
    })
    expect(await entitlementOf(user.bearer)).toMatchObject({
      plan_tier: 'paid',
      plan_status: 'active',
      relay_access_status: 'enabled',
      max_concurrent_conns: 1,
    })
  })

  test('that is repeated is accepted and changes nothing', async () => {
    const user = await service.api.given.user()
    const event = billingEvent('subscription.activated', { user_id: user.userId })
    const { id } = await sendEvent(event)
    const applied = await untilApplied(id)
    expect((await sendEvent(event, id)).answer).toEqual(took)
    expect([await rowsOf(id), await findEvent(service.api, id)]).toEqual([1, applied])
  })

  test('with a known id and another body changes nothing', async () => {
    const user = await service.api.given.user()
    const { id } = await sendEvent(billingEvent('subscription.activated', { user_id: user.userId }))
    const applied = await untilApplied(id)
    expect((await sendEvent(billingEvent('subscription.downgraded', { user_id: user.userId }), id)).answer).toEqual(
      took,
    )
    expect([await rowsOf(id), await findEvent(service.api, id)]).toEqual([1, applied])
    expect(await entitlementOf(user.bearer)).toMatchObject({ plan_tier: 'paid' })
  })

  test.each([
    ['the new', newSecret],
    ['the old', oldSecret],
  ])('by %s secret of a rotation is believed', async (_, secret) => {
    const { status, body } = await sandboxSender(service.api, secret).send(billingEvent('payment.failed'))
    expect([status, body]).toEqual(took)
  })

  test('with one valid signature among others is accepted', async () => {
    const event = JSON.stringify(billingEvent('payment.failed'))
    const right = signedHeaders(newSecret, event, { id: 'among-others' })['webhook-signature']
    const headers = { 'webhook-signature': `v1a,AAAA v1,${'A'.repeat(43)}= ${right}` }
    const { status } = await provider.send(event, { id: 'among-others', headers })
    expect(status).toBe(200)
  })
})

describe('a webhook without a valid signature is refused and not stored:', () => {
  const body = JSON.stringify(billingEvent('subscription.activated', { user_id: randomUUID() }))
  const seconds = (count: number) => new Date(Date.now() + count * 1000)
  const cases: Record<string, (id: string) => { sent: string; headers: Record<string, string> }> = {
    'one byte is another': (id) => ({
      sent: body.replace('activated', 'activateD'),
      headers: signedHeaders(newSecret, body, { id }),
    }),
    'the same JSON, spaced otherwise': (id) => ({
      sent: JSON.stringify(JSON.parse(body), null, 1),
      headers: signedHeaders(newSecret, body, { id }),
    }),
    'a signature that is too short': (id) => tampered(id, (signature) => signature.slice(0, -4)),
    'a signature with more behind it': (id) => tampered(id, (signature) => `${signature}AAAA`),
    'a signature that is no base64': (id) => tampered(id, () => `v1,${'é'.repeat(44)}`),
    'a signature without its version': (id) => tampered(id, (signature) => signature.slice(3)),
    'an empty signature': (id) => tampered(id, () => 'v1,'),
    'a time of 301 seconds ago': (id) => ({
      sent: body,
      headers: signedHeaders(newSecret, body, { id, at: seconds(-301.5) }),
    }),
    'a time to come': (id) => ({ sent: body, headers: signedHeaders(newSecret, body, { id, at: seconds(303) }) }),
    'another time than was signed': (id) => ({
      sent: body,
      headers: {
        ...signedHeaders(newSecret, body, { id }),
        'webhook-timestamp': String(Math.floor(Date.now() / 1000) + 7),
      },
    }),
    'a time that is none': (id) => ({
      sent: body,
      headers: { ...signedHeaders(newSecret, body, { id }), 'webhook-timestamp': '1e9' },
    }),
    'an unknown secret': (id) => ({ sent: body, headers: signedHeaders(secretOf(), body, { id }) }),
    'no id': (id) => without(id, 'webhook-id'),
    'no time': (id) => without(id, 'webhook-timestamp'),
    'no signature': (id) => without(id, 'webhook-signature'),
    'an id given twice': (id) => twice(id, 'webhook-id'),
    'a time given twice': (id) => twice(id, 'webhook-timestamp'),
  }
  type HeaderName = keyof ReturnType<typeof signedHeaders>
  const tampered = (id: string, change: (signature: string) => string) => {
    const headers = signedHeaders(newSecret, body, { id })
    return { sent: body, headers: { ...headers, 'webhook-signature': change(headers['webhook-signature']) } }
  }
  const without = (id: string, name: HeaderName) => {
    const { [name]: _, ...headers } = signedHeaders(newSecret, body, { id })
    return { sent: body, headers: headers as Record<string, string> }
  }
  const twice = (id: string, name: HeaderName) => {
    const headers = signedHeaders(newSecret, body, { id })
    return { sent: body, headers: { ...headers, [name.toUpperCase()]: headers[name] } }
  }

  test.each(Object.keys(cases))('%s', async (name) => {
    const id = randomUUID()
    const { sent, headers } = cases[name]?.(id) ?? { sent: '', headers: {} }
    const answer = await rawWebhook(service.api, sent, headers)
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([401, 'invalid_signature'])
    expect(await rowsOf(id)).toBe(0)
    expect(await service.api.sql`select from billing_events where event_key like ${`%${id}%`}`).toHaveLength(0)
  })
})

describe('an event goes to', () => {
  test('the account that it names, in upper or lower case', async () => {
    const { userId } = await service.api.given.user()
    expect(await acceptEvent(billingEvent('payment.failed', { user_id: userId.toUpperCase() }))).toMatchObject({
      user_id: userId,
    })
  })

  test('the owner of its subscription if it names no account', async () => {
    const { userId, bearer } = await service.api.given.user()
    const subscription_id = `sub_${randomUUID()}`
    await acceptEvent(billingEvent('subscription.activated', { user_id: userId, subscription_id }, Date.now() - 1000))
    const later = await acceptEvent(
      billingEvent('subscription.cancelled', { subscription_id, period_end: '2036-01-01T00:00:00Z' }),
    )
    expect(later).toMatchObject({ user_id: userId, error: null })
    await untilApplied(later.event_key)
    expect(await entitlementOf(bearer)).toMatchObject({ plan_tier: 'paid', plan_status: 'cancelled' })
  })

  test('the owner of its subscription once a later event names it', async () => {
    const { userId, bearer } = await service.api.given.user()
    const [subscription_id, at] = [`sub_${randomUUID()}`, Date.now()]
    const early = await acceptEvent(billingEvent('payment.failed', { subscription_id, invoice_id: 'in_2' }, at))
    expect(early).toMatchObject({ status: 'parked', user_id: null, error: 'no account is known for this subscription' })
    await acceptEvent(billingEvent('subscription.activated', { user_id: userId, subscription_id }, at - 1000))
    expect(await untilApplied(early.event_key)).toMatchObject({ user_id: userId, error: null })
    expect(await entitlementOf(bearer)).toMatchObject({ plan_tier: 'paid', plan_status: 'past_due' })
  })

  test('the named account once that account exists, and is parked until then', async () => {
    const userId = randomUUID()
    const early = await acceptEvent(billingEvent('subscription.activated', { user_id: userId }))
    expect(early).toMatchObject({ status: 'parked', user_id: null, error: 'the account does not exist' })
    const { sql } = service.api
    await sql`
      insert into users (id, email, stream_token_sealed, stream_token_hash)
      values (${userId}, ${`${userId}@example.com`}, 'sealed', sha256(gen_random_uuid()::text::bytea))`
    expect(await untilApplied(early.event_key)).toMatchObject({ user_id: userId, error: null })
    expect(await sql`select plan_tier, plan_status from users where id = ${userId}`).toEqual([
      { planTier: 'paid', planStatus: 'active' },
    ])
  })

  test('no account if it names an invalid account id', async () => {
    const names = ['1', 'x'.repeat(200), "'; drop table users; --", '{00000000-0000-0000-0000-000000000000}', '%']
    for (const user_id of names)
      expect(await acceptEvent(billingEvent('subscription.activated', { user_id }))).toMatchObject({
        status: 'parked',
        user_id: null,
        error: 'the account does not exist',
      })
  })

  test('no account if it is dated more than a year in the future', async () => {
    const user = await service.api.given.user()
    const of = { user_id: user.userId, subscription_id: `sub_${randomUUID()}` }
    const ahead = await acceptEvent(billingEvent('subscription.downgraded', of, Date.now() + 367 * 86_400_000))
    expect(ahead).toMatchObject({
      status: 'parked',
      user_id: user.userId,
      error: 'is dated more than a year in the future',
    })
    const { id } = await sendEvent(billingEvent('subscription.activated', of, Date.now() + 60_000))
    await untilApplied(id)
    expect(await entitlementOf(user.bearer)).toMatchObject({ plan_tier: 'paid' })
  })

  test('no account if its type is unknown', async () => {
    const { userId } = await service.api.given.user()
    const event = { ...billingEvent('payment.failed', { user_id: userId }), type: 'customer.winked' }
    expect(await acceptEvent(event)).toMatchObject({
      type: 'customer.winked',
      action: null,
      user_id: userId,
      status: 'parked',
      error: expect.stringMatching(/^type: /),
    })
  })
})

describe('a quantity of add-ons', () => {
  const paid = async () => {
    const user = await service.api.given.user()
    await untilApplied((await acceptEvent(billingEvent('subscription.activated', { user_id: user.userId }))).event_key)
    return user
  }

  test.each([
    [7, 4],
    [3, 4],
    [1e300, 4],
    [0, 1],
    [-1, 1],
  ])('of %s gives an account %s relays in all', async (quantity, relays) => {
    const { userId, bearer } = await paid()
    const { event_key } = await acceptEvent(billingEvent('addon.updated', { user_id: userId, quantity }))
    await untilApplied(event_key)
    expect(await entitlementOf(bearer)).toMatchObject({ max_concurrent_conns: relays })
  })

  test.each([1.5, '2', null, [2], { count: 2 }, true, undefined])('of %j is parked', async (quantity) => {
    const { userId, bearer } = await paid()
    expect(await acceptEvent(billingEvent('addon.updated', { user_id: userId, quantity }))).toMatchObject({
      status: 'parked',
      error: 'data.quantity: not an integer',
    })
    expect(await entitlementOf(bearer)).toMatchObject({ max_concurrent_conns: 1 })
  })
})
