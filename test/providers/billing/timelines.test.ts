/** Typical event sequences of the vendors lead to the expected entitlement, in any order of arrival. */
import { describe, expect, test } from 'vitest'
import { type AccountEntitlement, entitlementAt } from '../../../domain/billing/entitlement.ts'
import { parseLemonSqueezyEvent } from '../../../providers/billing/lemonsqueezy-events.ts'
import type { ParsedEvent, WebhookDelivery } from '../../../providers/billing/provider.ts'
import { parseStripeEvent } from '../../../providers/billing/stripe-events.ts'
import { StripeInvoice, StripeSubscription } from '../../../providers/billing/stripe-shapes.ts'
import {
  lemonSqueezyConfig,
  lemonSqueezyDelivery,
  lemonSqueezyInvoice,
  lemonSqueezySubscription,
} from '../../support/billing-lemonsqueezy.ts'
import {
  marchPeriod,
  stripeCharge,
  stripeConfig,
  stripeDelivery,
  stripeDispute,
  stripeInvoice,
  stripeRefund,
  stripeSubscription,
} from '../../support/billing-stripe.ts'

const graceSeconds = 48 * 3600

/** The entitlement at a time, checked for several orders of arrival. */
function deriveEntitlement(parsed: readonly ParsedEvent[], at: number): AccountEntitlement {
  const events = parsed.flatMap((result) => (result.meaning === 'event' ? result.event : []))
  const inOrder = entitlementAt(events, at, graceSeconds)
  const reversed = entitlementAt(events.toReversed(), at, graceSeconds)
  expect(reversed).toEqual(inOrder)
  return inOrder
}

const summarize = ({ planTier, planStatus, addons }: AccountEntitlement) => [planTier, planStatus, addons]

describe('Lemon Squeezy', () => {
  const parse = (delivery: WebhookDelivery) =>
    parseLemonSqueezyEvent(delivery, { ...lemonSqueezyConfig, findKind: async () => 'plan' })
  const time = (day: string, clock: string) => `2026-${day}T${clock}.000000Z`
  const subscription = (name: string, attributes: object) =>
    parse(lemonSqueezyDelivery(name, lemonSqueezySubscription('7', { ...attributes }), 'u'))
  const payment = (name: string, id: string, attributes: object) =>
    parse(lemonSqueezyDelivery(name, lemonSqueezyInvoice(id, { ...attributes })))

  const created_at = time('03-01', '10:00:00')
  const march = { created_at, renews_at: time('04-01', '10:00:00') }
  const april = { created_at, renews_at: time('05-01', '10:00:00') }
  const bought = () => [
    subscription('subscription_created', { ...march, updated_at: time('03-01', '10:00:05') }),
    payment('subscription_payment_success', '901', { updated_at: time('03-01', '10:00:06') }),
    subscription('subscription_updated', { ...march, updated_at: time('03-01', '10:00:06') }),
  ]
  const renewed = () => [
    payment('subscription_payment_success', '902', { updated_at: time('04-01', '10:00:20') }),
    subscription('subscription_updated', { ...april, updated_at: time('04-01', '10:00:21') }),
  ]
  const failed = () => [
    payment('subscription_payment_failed', '902', { status: 'pending', updated_at: time('04-01', '10:00:20') }),
    subscription('subscription_updated', { ...march, status: 'past_due', updated_at: time('04-01', '10:00:21') }),
  ]
  const refunded = (invoice: string, day: string) => [
    payment('subscription_payment_refunded', invoice, { status: 'refunded', updated_at: time(day, '12:00:00') }),
  ]
  const at = (day: string) => Date.parse(`2026-${day}T12:00:01Z`)

  test.each([
    ['bought', [bought], '03-02', ['paid', 'active', 0]],
    ['bought and refunded', [bought, () => refunded('901', '03-02')], '03-02', ['free', 'none', 0]],
    ['renewed', [bought, renewed], '04-02', ['paid', 'active', 0]],
    ['renewed and refunded', [bought, renewed, () => refunded('902', '04-02')], '04-02', ['free', 'none', 0]],
    [
      'renewed, the first month refunded',
      [bought, renewed, () => refunded('901', '04-02')],
      '04-02',
      ['paid', 'active', 0],
    ],
    ['failing', [bought, failed], '04-02', ['paid', 'past_due', 0]],
    ['failing for more than 48 hours', [bought, failed], '04-04', ['free', 'none', 0]],
  ] as const)('%s', async (_what, parts, day, expected) => {
    const events = await Promise.all(parts.flatMap((part) => part()))
    expect(summarize(deriveEntitlement(events, at(day)))).toEqual(expected)
  })

  test('a recovery during and after the payment grace period activates the plan', async () => {
    for (const day of ['04-02', '04-09']) {
      const recovered = [
        payment('subscription_payment_recovered', '902', { updated_at: time(day, '10:00:00') }),
        subscription('subscription_updated', { ...april, updated_at: time(day, '10:00:01') }),
      ]
      const events = await Promise.all([...bought(), ...failed(), ...recovered])
      expect(summarize(deriveEntitlement(events, at(day)))).toEqual(['paid', 'active', 0])
    }
  })

  test('the refund of a proration keeps the plan', async () => {
    const changed = { billing_reason: 'updated', updated_at: time('03-10', '10:00:00') }
    const refundedChange = { ...changed, status: 'refunded', updated_at: time('03-11', '10:00:00') }
    const change = [
      payment('subscription_payment_success', '950', changed),
      payment('subscription_payment_refunded', '950', refundedChange),
    ]
    const summaryAfter = async (parts: typeof change) =>
      summarize(deriveEntitlement(await Promise.all([...bought(), ...parts]), at('03-12')))
    expect(await summaryAfter(change)).toEqual(['paid', 'active', 0])
    expect(await summaryAfter([...change, ...refunded('901', '03-12')])).toEqual(['free', 'none', 0])
  })

  test('a plan changed into add-ons ends, and is active when it is changed back', async () => {
    const changed = (variant_id: number, day: string) =>
      subscription('subscription_plan_changed', { ...march, variant_id, updated_at: time(day, '10:00:00') })
    const toAddons = [...bought(), changed(1002, '03-05')]
    expect(summarize(deriveEntitlement(await Promise.all(toAddons), at('03-06')))).toEqual(['free', 'none', 1])
    const back = [...toAddons, changed(1001, '03-07')]
    expect(summarize(deriveEntitlement(await Promise.all(back), at('03-08')))).toEqual(['paid', 'active', 0])
  })

  test('a payment dated after the expiry does not activate an expired subscription', async () => {
    const expired = { ...march, status: 'expired', ends_at: time('04-01', '10:00:00') }
    const events = await Promise.all([
      ...bought(),
      subscription('subscription_expired', { ...expired, updated_at: time('04-01', '10:00:10') }),
      payment('subscription_payment_success', '902', { updated_at: time('04-01', '10:00:20') }),
    ])
    expect(summarize(deriveEntitlement(events, at('04-02')))).toEqual(['free', 'none', 0])
  })

  test('a pause that keeps the service is no end, and one that stops it is', async () => {
    const paused = (mode: string) =>
      subscription('subscription_paused', {
        ...march,
        status: 'paused',
        pause: { mode, resumes_at: null },
        updated_at: time('03-10', '10:00:00'),
      })
    const planAfter = async (mode: string, day: string, more: ReturnType<typeof subscription>[] = []) =>
      summarize(deriveEntitlement(await Promise.all([...bought(), paused(mode), ...more]), at(day)))
    expect(await planAfter('free', '03-20')).toEqual(['paid', 'active', 0])
    expect(await planAfter('free', '05-20')).toEqual(['paid', 'active', 0])
    expect(await planAfter('void', '03-20')).toEqual(['free', 'none', 0])
    const resumed = [subscription('subscription_unpaused', { ...april, updated_at: time('04-05', '10:00:00') })]
    for (const mode of ['free', 'void']) expect(await planAfter(mode, '04-06', resumed)).toEqual(['paid', 'active', 0])
  })

  test('a cancelled subscription lasts until the end of its period', async () => {
    const ends = { status: 'cancelled', ends_at: time('04-01', '10:00:00'), updated_at: time('03-10', '10:00:00') }
    const events = await Promise.all([...bought(), subscription('subscription_cancelled', { ...march, ...ends })])
    expect(deriveEntitlement(events, at('03-20'))).toMatchObject({
      planStatus: 'cancelled',
      periodStart: Date.parse(created_at),
      endsAt: Date.parse(ends.ends_at),
    })
    expect(summarize(deriveEntitlement(events, at('04-01')))).toEqual(['free', 'none', 0])
  })
})

describe('Stripe', () => {
  const seconds = (date: string) => Date.parse(date) / 1000
  const april = { start: marchPeriod.end, end: seconds('2026-05-01T10:00:00Z') }
  const inApril = {
    latest_invoice: 'in_2',
    items: {
      data: [
        { quantity: 1, price: { id: 'price_plan' }, current_period_start: april.start, current_period_end: april.end },
      ],
    },
  }
  const parse = (type: string, object: object, date: string, invoice: object = stripeInvoice('in_1')) =>
    parseStripeEvent(stripeDelivery(type, object, { id: `evt_${type}_${date}`, created: seconds(date) }), {
      ...stripeConfig,
      lookups: {
        findSubscription: async () => StripeSubscription.parse(stripeSubscription('sub_1')),
        findInvoice: async () => StripeInvoice.parse(invoice),
      },
    })
  const subscription = (name: string, attributes: object, date: string) =>
    parse(`customer.subscription.${name}`, stripeSubscription('sub_1', { ...attributes }), date)
  const secondInvoice = (attributes: object = {}) => {
    const { lines, ...invoice } = stripeInvoice('in_2', { ...attributes })
    return { ...invoice, lines: { data: lines.data.map((line) => ({ ...line, period: april })) } }
  }

  const bought = () => [
    subscription('created', { status: 'incomplete' }, '2026-03-01T10:00:00Z'),
    parse('invoice.paid', stripeInvoice('in_1'), '2026-03-01T10:00:03Z'),
    subscription('updated', {}, '2026-03-01T10:00:03Z'),
  ]
  const renewed = () => [
    subscription('updated', inApril, '2026-04-01T10:00:01Z'),
    parse('invoice.paid', secondInvoice(), '2026-04-01T11:00:02Z'),
  ]
  const failed = () => [
    subscription('updated', inApril, '2026-04-01T10:00:01Z'),
    parse('invoice.payment_failed', secondInvoice(), '2026-04-01T11:00:02Z'),
    subscription('updated', { ...inApril, status: 'past_due' }, '2026-04-01T11:00:02Z'),
  ]
  const refundOf = (invoice: object, date: string) => [parse('charge.refunded', stripeCharge(), date, invoice)]
  const refunded = (invoice: string, date: string) => refundOf(stripeInvoice(invoice), date)
  const fee = stripeInvoice('in_fee', { billing_reason: 'manual' })
  const feePaid = () => [
    parse('invoice.paid', fee, '2026-03-05T10:00:00Z'),
    subscription('updated', { latest_invoice: 'in_fee' }, '2026-03-05T10:00:01Z'),
  ]
  const disputed = () => [parse('charge.dispute.created', stripeDispute(), '2026-03-10T10:00:00Z')]
  const wonInApril = () => [parse('charge.dispute.closed', stripeDispute({ status: 'won' }), '2026-04-02T10:00:00Z')]
  const won = () => [parse('charge.dispute.closed', stripeDispute({ status: 'won' }), '2026-03-20T10:00:00Z')]
  const refundFailed = (invoice: string, date: string) => [
    parse('refund.failed', stripeRefund({ status: 'failed' }), date, stripeInvoice(invoice)),
  ]
  const isPaused = { pause_collection: { behavior: 'keep_as_draft', resumes_at: null } }
  const paused = () => [
    subscription('updated', { ...inApril, ...isPaused, status: 'past_due' }, '2026-04-02T00:00:00Z'),
    parse('invoice.payment_failed', secondInvoice(), '2026-04-04T11:00:00Z'),
  ]
  const resumed = () => [subscription('updated', { ...inApril, status: 'past_due' }, '2026-04-20T00:00:00Z')]
  const paidLate = () => [
    parse('invoice.paid', secondInvoice(), '2026-04-08T10:00:00Z'),
    subscription('updated', inApril, '2026-04-08T10:00:00Z'),
  ]

  test.each([
    ['bought', [bought], '2026-03-02T00:00:00Z', 'active'],
    ['bought and refunded', [bought, () => refunded('in_1', '2026-03-02T00:00:00Z')], '2026-03-02T00:00:01Z', 'none'],
    ['renewed', [bought, renewed], '2026-04-02T00:00:00Z', 'active'],
    [
      'renewed and refunded',
      [bought, renewed, () => refunded('in_2', '2026-04-02T00:00:00Z')],
      '2026-04-02T00:00:01Z',
      'none',
    ],
    [
      'renewed, March refunded',
      [bought, renewed, () => refunded('in_1', '2026-04-02T00:00:00Z')],
      '2026-04-02T00:00:01Z',
      'active',
    ],
    ['failing', [bought, failed], '2026-04-03T11:00:01Z', 'past_due'],
    ['failing for 48 hours', [bought, failed], '2026-04-03T11:00:02Z', 'none'],
    ['paid after the downgrade', [bought, failed, paidLate], '2026-04-08T10:00:01Z', 'active'],
    [
      'with a refunded manual fee',
      [bought, feePaid, () => refundOf(fee, '2026-03-06T00:00:00Z')],
      '2026-03-06T00:00:01Z',
      'active',
    ],
    [
      'with a manual fee, the month refunded',
      [bought, feePaid, () => refunded('in_1', '2026-03-06T00:00:00Z')],
      '2026-03-06T00:00:01Z',
      'none',
    ],
    ['disputed', [bought, disputed], '2026-03-10T10:00:01Z', 'none'],
    ['disputed, and won', [bought, disputed, won], '2026-03-20T10:00:01Z', 'active'],
    ['disputed, won, and renewed', [bought, disputed, won, renewed], '2026-04-02T00:00:00Z', 'active'],
    ['failing, and a dispute of March won', [bought, disputed, failed, wonInApril], '2026-04-03T11:00:01Z', 'past_due'],
    [
      'refunded, and the refund failed',
      [bought, () => refunded('in_1', '2026-03-02T00:00:00Z'), () => refundFailed('in_1', '2026-03-09T00:00:00Z')],
      '2026-03-09T00:00:01Z',
      'active',
    ],
    [
      'refunded, the refund failed, and refunded again',
      [
        bought,
        () => refunded('in_1', '2026-03-02T00:00:00Z'),
        () => refundFailed('in_1', '2026-03-09T00:00:00Z'),
        () => refunded('in_1', '2026-03-10T00:00:00Z'),
      ],
      '2026-03-10T00:00:01Z',
      'none',
    ],
    [
      'refunded, and a refund of another month failed',
      [
        bought,
        renewed,
        () => refunded('in_2', '2026-04-02T00:00:00Z'),
        () => refundFailed('in_1', '2026-04-09T00:00:00Z'),
      ],
      '2026-04-09T00:00:01Z',
      'none',
    ],
    ['failing while the collection is paused', [bought, failed, paused], '2026-04-19T00:00:00Z', 'active'],
    ['still unpaid when it is collected again', [bought, failed, paused, resumed], '2026-04-21T23:59:59Z', 'past_due'],
    ['unpaid for 48 hours after that', [bought, failed, paused, resumed], '2026-04-22T00:00:00Z', 'none'],
  ] as const)('%s', async (_what, parts, date, planStatus) => {
    const events = await Promise.all(parts.flatMap((part) => part()))
    expect(deriveEntitlement(events, Date.parse(date)).planStatus).toBe(planStatus)
  })

  test('add-ons beside the plan count with it, and go with their item or with the plan', async () => {
    const [item] = stripeSubscription('sub_1').items.data
    const withAddons = (quantity: number) => ({
      items: { data: [item, { ...item, price: { id: 'price_addon' }, quantity }] },
    })
    const summaryAt = async (date: string, ...events: ReturnType<typeof subscription>[]) =>
      summarize(deriveEntitlement(await Promise.all([...bought(), ...events]), Date.parse(date)))
    const added = subscription('updated', withAddons(2), '2026-03-05T10:00:00Z')
    expect(await summaryAt('2026-03-06T00:00:00Z', added)).toEqual(['paid', 'active', 2])
    const unpaid = subscription('updated', { ...withAddons(2), status: 'past_due' }, '2026-03-07T10:00:00Z')
    expect(await summaryAt('2026-03-08T00:00:00Z', added, unpaid)).toEqual(['paid', 'past_due', 2])
    const removed = subscription('updated', {}, '2026-03-07T10:00:00Z')
    expect(await summaryAt('2026-03-08T00:00:00Z', added, removed)).toEqual(['paid', 'active', 0])
    const ended = subscription('deleted', { ...withAddons(2), status: 'canceled' }, '2026-03-07T10:00:00Z')
    expect(await summaryAt('2026-03-08T00:00:00Z', added, ended)).toEqual(['free', 'none', 0])
  })

  test('add-ons that are active again after an unpaid change of their number stay', async () => {
    const ofAddons = { price: 'price_addon', quantity: 2, metadata: { user_id: 'user-1', kind: 'addon' } }
    const addons = (status: string, date: string) =>
      parse('customer.subscription.updated', stripeSubscription('sub_1', { status }, ofAddons), date)
    const prorated = stripeInvoice('in_2', { billing_reason: 'subscription_update' }, ofAddons)
    const events = await Promise.all([
      addons('active', '2026-03-01T10:00:03Z'),
      parse('invoice.payment_failed', prorated, '2026-03-05T10:00:00Z'),
      addons('past_due', '2026-03-05T10:00:01Z'),
      parse('invoice.paid', prorated, '2026-03-06T10:00:00Z'),
      addons('active', '2026-03-06T10:00:01Z'),
    ])
    expect(deriveEntitlement(events, Date.parse('2026-03-09T00:00:00Z')).addons).toBe(2)
  })

  test('the refund of a proration keeps the number of add-ons', async () => {
    const ofAddons = { price: 'price_addon', quantity: 2, metadata: { user_id: 'user-1', kind: 'addon' } }
    const addons = (quantity: number, date: string) =>
      parse('customer.subscription.updated', stripeSubscription('sub_1', {}, { ...ofAddons, quantity }), date)
    const prorated = stripeInvoice('in_2', { billing_reason: 'subscription_update' }, ofAddons)
    const first = stripeInvoice('in_1', { billing_reason: 'subscription_create' }, ofAddons)
    const events = await Promise.all([
      addons(1, '2026-03-01T10:00:03Z'),
      parse('invoice.paid', first, '2026-03-01T10:00:03Z'),
      addons(2, '2026-03-05T10:00:00Z'),
      parse('invoice.paid', prorated, '2026-03-05T10:00:01Z'),
      ...refundOf(prorated, '2026-03-06T10:00:00Z'),
    ])
    const at = Date.parse('2026-03-07T00:00:00Z')
    expect(deriveEntitlement(events, at).addons).toBe(2)
    const periodRefund = await Promise.all(refundOf(first, '2026-03-06T11:00:00Z'))
    expect(deriveEntitlement([...events, ...periodRefund], at).addons).toBe(0)
  })
})
