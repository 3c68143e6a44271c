/** Properties of the entitlement for any events in any order. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { entitlementAt } from '../../../domain/billing/entitlement.ts'
import { type BillingEvent, type BillingEventAction, billingEventActions } from '../../../domain/billing/event.ts'
import type { Millis } from '../../../domain/millis.ts'
import { day } from './billing-events.ts'

const graceSeconds = (15 * day) / 1000
const runs = { numRuns: 500 }

/**
 * Few times and few ids, so that many events are about the same subscription and moment. Even two different events may
 * have one key.
 */
const anyTime = fc.nat(9).map((tens) => Date.UTC(2026, 0, 31) + tens * 10 * day)
const anyTimeOrNull = fc.option(anyTime, { freq: 2 })
const anyEvent: fc.Arbitrary<BillingEvent> = fc.record({
  key: fc.constantFrom('k1', 'k2'),
  action: fc.constantFrom<BillingEventAction>(...billingEventActions),
  provider: fc.constantFrom('sandbox', 'sandbox', 'stripe'),
  subscriptionId: fc.constantFrom('a', 'a', 'a', 'b'),
  kind: fc.constantFrom('plan', 'plan', 'addon'),
  at: anyTime,
  quantity: fc.option(fc.constantFrom(-1, 0, 1, 2, 5)),
  invoiceId: fc.constantFrom(null, 'i', 'j'),
  amount: fc.constantFrom('full', 'partial', 'none', null),
  invoiceReason: fc.constantFrom('period', 'other', null),
  addons: fc.constantFrom(null, -1, 2, 5),
  collection: fc.constantFrom(null, 'running', 'paused'),
  periodStart: anyTimeOrNull,
  periodEnd: anyTimeOrNull,
})
const anyEvents = fc.array(anyEvent, { maxLength: 7 })
/** Events, and the same events in another order and some of them repeated. */
const eventsAndRepetitions = anyEvents.chain((events) =>
  fc.tuple(
    fc.constant(events),
    fc.subarray(events).chain((repeated) => {
      const all = [...events, ...repeated]
      return fc.shuffledSubarray(all, { minLength: all.length })
    }),
  ),
)

describe('the entitlement', () => {
  test('does not depend on the order of events, nor on repetitions', () => {
    fc.assert(
      fc.property(eventsAndRepetitions, anyTime, ([events, shuffled], now) => {
        expect(entitlementAt(shuffled, now, graceSeconds)).toEqual(entitlementAt(events, now, graceSeconds))
      }),
      { numRuns: 2000 },
    )
  })

  test('leaves the events as they are', () => {
    fc.assert(
      fc.property(anyEvents, anyTime, (events, now) => {
        const before = structuredClone(events)
        entitlementAt(events, now, graceSeconds)
        expect(events).toEqual(before)
      }),
      runs,
    )
  })

  test('is plain JSON', () => {
    fc.assert(
      fc.property(anyEvents, anyTime, (events, now) => {
        const entitlement = entitlementAt(events, now, graceSeconds)
        expect(JSON.parse(JSON.stringify(entitlement))).toStrictEqual(entitlement)
      }),
      runs,
    )
  })

  test('follows from numbers of any size and sign, in any order', () => {
    const anyNumber = fc.double()
    const extreme = fc.tuple(anyEvent, anyNumber, fc.option(anyNumber), fc.option(anyNumber), fc.option(anyNumber))
    const extremeEvents = fc.array(
      extreme.map(([event, at, quantity, periodStart, periodEnd]) => ({
        ...event,
        at,
        quantity,
        periodStart,
        periodEnd,
      })),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(extremeEvents, (events) => {
        const entitlement = entitlementAt(events, 0, graceSeconds)
        expect(JSON.parse(JSON.stringify(entitlement))).toStrictEqual(entitlement)
        expect(entitlementAt(events.toReversed(), 0, graceSeconds)).toEqual(entitlement)
      }),
    )
  })
})

describe('without new events the entitlement', () => {
  test('changes at `changesAt` and not before, and never when that is null', () => {
    fc.assert(
      fc.property(anyEvents, anyTime, fc.double({ min: 0, max: 1, noNaN: true }), (events, now, share) => {
        const before = entitlementAt(events, now, graceSeconds)
        const end = before.changesAt ?? now + 1000 * day
        const between = Math.min(end - 1, Math.floor(now + share * (end - now)))
        for (const at of [between, end - 1]) expect(entitlementAt(events, at, graceSeconds)).toEqual(before)
        if (before.changesAt === null) return
        expect(before.changesAt).toBeGreaterThan(now)
        const after = entitlementAt(events, before.changesAt, graceSeconds)
        expect({ ...after, changesAt: null }).not.toEqual({ ...before, changesAt: null })
      }),
      runs,
    )
  })

  test('changes at `changesAt` and not before while payments are unresolved', () => {
    const anyPayment = fc.record({ acceptedAt: anyTime, holdsUntil: anyTime })
    fc.assert(
      fc.property(anyEvents, fc.array(anyPayment, { maxLength: 3 }), anyTime, (events, unresolved, now) => {
        const before = entitlementAt(events, now, graceSeconds, unresolved)
        const end = before.changesAt ?? now + 1000 * day
        expect(entitlementAt(events, end - 1, graceSeconds, unresolved)).toEqual(before)
        const resolved = entitlementAt(events, now, graceSeconds)
        if (resolved.planTier === 'paid') expect(before.planTier).toBe('paid')
      }),
      runs,
    )
  })

  test('only gets worse', () => {
    const worth = { none: 0, cancelled: 1, past_due: 2, active: 3 }
    fc.assert(
      fc.property(anyEvents, anyTime, anyTime, (events, a, b) => {
        const before = entitlementAt(events, Math.min(a, b), graceSeconds)
        const after = entitlementAt(events, Math.max(a, b), graceSeconds)
        expect(worth[after.planStatus]).toBeLessThanOrEqual(worth[before.planStatus])
        expect(after.addons).toBeLessThanOrEqual(before.addons)
      }),
      runs,
    )
  })
})

describe('compared with rules that look at all events at once', () => {
  /** Without refunds and paused collections, for which there are examples. */
  const anyHistory = fc.array(
    anyEvent
      .filter(({ action }) => !['refund', 'grant', 'withdraw'].includes(action))
      .map(
        (event): BillingEvent => ({
          ...event,
          provider: 'sandbox',
          subscriptionId: 'a',
          kind: 'plan',
          collection: null,
        }),
      ),
    { maxLength: 8 },
  )
  const latest = (times: readonly Millis[]) => Math.max(Number.NEGATIVE_INFINITY, ...times)
  const isForPeriod = (history: readonly BillingEvent[], { invoiceId, invoiceReason }: BillingEvent) =>
    invoiceId === null
      ? invoiceReason !== 'other'
      : !history.some((event) => event.invoiceId === invoiceId && event.invoiceReason === 'other')

  function firstUnsettledFailure(history: readonly BillingEvent[]): Millis {
    const having = (action: BillingEventAction) => history.filter((event) => event.action === action)
    const unsettled = having('payment_failed').filter(
      (failure) =>
        !having('activate').some(({ at }) => at > failure.at) &&
        !having('payment_recovery').some((payment) =>
          failure.invoiceId !== null && payment.invoiceId !== null
            ? payment.invoiceId === failure.invoiceId
            : isForPeriod(history, payment) && payment.at >= failure.at,
        ),
    )
    return Math.min(Number.POSITIVE_INFINITY, ...unsettled.map(({ at }) => at))
  }

  /** Without regard to failures. */
  function isActive(history: readonly BillingEvent[]): boolean {
    const latestOf = (...actions: BillingEventAction[]) =>
      latest(history.filter(({ action }) => actions.includes(action)).map(({ at }) => at))
    const [activatedAt, endedAt] = [latestOf('activate', 'update_addon'), latestOf('cancelled', 'downgrade')]
    if (latest([activatedAt, endedAt]) === Number.NEGATIVE_INFINITY)
      return history.some((event) => event.action === 'payment_recovery' && isForPeriod(history, event))
    return activatedAt > endedAt
  }

  test('the plan is active, and its payment grace period ends, at the same times', () => {
    fc.assert(
      fc.property(anyHistory, anyTime, (history, now) => {
        const entitlement = entitlementAt(history, now, graceSeconds)
        if (!isActive(history)) {
          expect(entitlement.planStatus).not.toBe('active')
          return
        }
        const graceEndsAt = firstUnsettledFailure(history) + graceSeconds * 1000
        const isOver = now >= graceEndsAt
        expect(entitlement.planTier).toBe(isOver ? 'free' : 'paid')
        expect(entitlement.graceEndsAt).toBe(isOver || graceEndsAt === Number.POSITIVE_INFINITY ? null : graceEndsAt)
      }),
      runs,
    )
  })
})
