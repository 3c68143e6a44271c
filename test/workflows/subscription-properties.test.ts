import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { BillingEvent, BillingEventAction } from '../../domain/billing-event.ts'
import {
  applyEvent,
  entitlementAt,
  initialState,
  type Millis,
  type SubscriptionState,
} from '../../domain/subscription.ts'
import { day } from './billing-facts.ts'

const graceSeconds = (15 * day) / 1000
const runs = { numRuns: 500 }

/** Few moments and few names, so that facts meet, tie and repeat; a key may even be another fact's. */
const anyTime = fc.nat(9).map((tens) => Date.UTC(2026, 0, 31) + tens * 10 * day)
const anyTimeOrNone = fc.option(anyTime, { freq: 2 })
const anyFact: fc.Arbitrary<BillingEvent> = fc.record({
  key: fc.constantFrom('k1', 'k2'),
  action: fc.constantFrom<BillingEventAction>(
    'activate',
    'update_addon',
    'payment_recovery',
    'payment_failed',
    'cancelled',
    'downgrade',
    'refund',
    'grant',
    'withdraw',
  ),
  provider: fc.constantFrom('sandbox', 'sandbox', 'stripe'),
  subscriptionId: fc.constantFrom('a', 'a', 'a', 'b'),
  kind: fc.constantFrom('plan', 'plan', 'addon'),
  at: anyTime,
  quantity: fc.option(fc.constantFrom(-1, 0, 1, 2, 5)),
  invoiceId: fc.constantFrom(null, 'i', 'j'),
  amount: fc.constantFrom('full', 'partial', null),
  invoiceReason: fc.constantFrom('period', 'other', null),
  periodStart: anyTimeOrNone,
  periodEnd: anyTimeOrNone,
})
const anyFacts = fc.array(anyFact, { maxLength: 7 })
/** The same facts in another order, some of them more than once. */
const toldTwice = anyFacts.chain((facts) =>
  fc.tuple(
    fc.constant(facts),
    fc.subarray(facts).chain((again) => {
      const all = [...facts, ...again]
      return fc.shuffledSubarray(all, { minLength: all.length })
    }),
  ),
)

const knowing = (facts: readonly BillingEvent[]): SubscriptionState =>
  facts.reduce((state, fact) => applyEvent(state, fact), initialState)

describe('whatever is told', () => {
  test('in another order and repeatedly, it comes to the same', () => {
    fc.assert(
      fc.property(toldTwice, anyTime, ([facts, otherwise], now) => {
        const state = knowing(facts)
        expect(knowing(otherwise)).toEqual(state)
        expect(entitlementAt(knowing(otherwise), now, graceSeconds)).toEqual(entitlementAt(state, now, graceSeconds))
      }),
      { numRuns: 2000 },
    )
  })

  test('what is known already leaves the very same state', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const state = knowing(facts)
        for (const fact of facts) expect(applyEvent(state, fact)).toBe(state)
      }),
      runs,
    )
  })

  test('the state and the standing are plain JSON', () => {
    fc.assert(
      fc.property(anyFacts, anyTime, (facts, now) => {
        const state = knowing(facts)
        const standing = entitlementAt(state, now, graceSeconds)
        expect(JSON.parse(JSON.stringify(state))).toStrictEqual(state)
        expect(JSON.parse(JSON.stringify(standing))).toStrictEqual(standing)
      }),
      runs,
    )
  })

  test('numbers of any size and sign do no harm', () => {
    const anyNumber = fc.double()
    const wild = fc.tuple(anyFact, anyNumber, fc.option(anyNumber), fc.option(anyNumber), fc.option(anyNumber))
    const wildFacts = fc.array(
      wild.map(([fact, at, quantity, periodStart, periodEnd]) => ({ ...fact, at, quantity, periodStart, periodEnd })),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(wildFacts, (facts) => {
        const state = knowing(facts)
        expect(knowing(facts.toReversed())).toEqual(state)
        const standing = entitlementAt(state, 0, graceSeconds)
        expect(JSON.parse(JSON.stringify(standing))).toStrictEqual(standing)
      }),
    )
  })
})

describe('time alone', () => {
  test('changes the standing at the moment that it names, not before, and never when it names none', () => {
    fc.assert(
      fc.property(anyFacts, anyTime, fc.double({ min: 0, max: 1, noNaN: true }), (facts, now, share) => {
        const state = knowing(facts)
        const { changesAt, ...seen } = entitlementAt(state, now, graceSeconds)
        const end = changesAt ?? now + 1000 * day
        const between = Math.min(end - 1, Math.floor(now + share * (end - now)))
        for (const at of [between, end - 1])
          expect(entitlementAt(state, at, graceSeconds)).toEqual({ ...seen, changesAt })
        if (changesAt === null) return
        expect(changesAt).toBeGreaterThan(now)
        const { changesAt: _next, isPlainlyFree: _then, ...after } = entitlementAt(state, changesAt, graceSeconds)
        const { isPlainlyFree: _now, ...before } = seen
        expect(after).not.toEqual(before)
      }),
      runs,
    )
  })

  test('changes the standing as named while payments are unresolved, too', () => {
    const anyPayment = fc.record({
      acceptedAt: anyTime,
      holdsUntil: anyTime,
    })
    fc.assert(
      fc.property(anyFacts, fc.array(anyPayment, { maxLength: 3 }), anyTime, (facts, unresolved, now) => {
        const state = knowing(facts)
        const { changesAt, ...seen } = entitlementAt(state, now, graceSeconds, unresolved)
        const end = changesAt ?? now + 1000 * day
        expect(entitlementAt(state, end - 1, graceSeconds, unresolved)).toEqual({ ...seen, changesAt })
        const withoutHold = entitlementAt(state, now, graceSeconds)
        if (withoutHold.planTier === 'paid') expect(seen.planTier).toBe('paid')
      }),
      runs,
    )
  })

  test('gives nothing to an account: the plan only gets worse until news come', () => {
    const worth = { none: 0, cancelled: 1, past_due: 2, active: 3 }
    fc.assert(
      fc.property(anyFacts, anyTime, anyTime, (facts, one, other) => {
        const [before, after] = [Math.min(one, other), Math.max(one, other)].map((now) =>
          entitlementAt(knowing(facts), now, graceSeconds),
        )
        expect(worth[after?.planStatus ?? 'none']).toBeLessThanOrEqual(worth[before?.planStatus ?? 'active'])
        expect(after?.addons).toBeLessThanOrEqual(before?.addons ?? 0)
      }),
      runs,
    )
  })
})

describe('the rules, read from the whole history instead of from what is remembered of it', () => {
  /** Without refunds, which have examples of their own. */
  const anyHistory = fc.array(
    anyFact
      .filter(({ action }) => !['refund', 'grant', 'withdraw'].includes(action))
      .map((fact): BillingEvent => ({ ...fact, provider: 'sandbox', subscriptionId: 'a', kind: 'plan' })),
    { maxLength: 8 },
  )
  const latest = (times: readonly Millis[]) => Math.max(Number.NEGATIVE_INFINITY, ...times)
  const isOfPeriod = (history: readonly BillingEvent[], { invoiceId, invoiceReason }: BillingEvent) =>
    invoiceId === null
      ? invoiceReason !== 'other'
      : !history.some((fact) => fact.invoiceId === invoiceId && fact.invoiceReason === 'other')

  function firstUnsettled(history: readonly BillingEvent[]): Millis {
    const told = (action: BillingEventAction) => history.filter((fact) => fact.action === action)
    const open = told('payment_failed').filter(
      (failure) =>
        !told('activate').some(({ at }) => at > failure.at) &&
        !told('payment_recovery').some((payment) =>
          failure.invoiceId !== null && payment.invoiceId !== null
            ? payment.invoiceId === failure.invoiceId
            : isOfPeriod(history, payment) && payment.at >= failure.at,
        ),
    )
    return Math.min(Number.POSITIVE_INFINITY, ...open.map(({ at }) => at))
  }

  function isActiveButForFailures(history: readonly BillingEvent[]): boolean {
    const at = (...actions: BillingEventAction[]) =>
      latest(history.filter(({ action }) => actions.includes(action)).map((fact) => fact.at))
    const [began, worse] = [at('activate', 'update_addon'), at('cancelled', 'downgrade')]
    if (latest([began, worse]) === Number.NEGATIVE_INFINITY)
      return history.some((fact) => fact.action === 'payment_recovery' && isOfPeriod(history, fact))
    return began > worse
  }

  test('agree on who is active, and on when a grace ends', () => {
    fc.assert(
      fc.property(anyHistory, anyTime, (history, now) => {
        const standing = entitlementAt(knowing(history), now, graceSeconds)
        if (!isActiveButForFailures(history)) {
          expect(standing.planStatus).not.toBe('active')
          return
        }
        const graceEndsAt = firstUnsettled(history) + graceSeconds * 1000
        const isOver = now >= graceEndsAt
        expect(standing.planTier).toBe(isOver ? 'free' : 'paid')
        expect(standing.graceEndsAt).toBe(isOver || graceEndsAt === Number.POSITIVE_INFINITY ? null : graceEndsAt)
      }),
      runs,
    )
  })
})
