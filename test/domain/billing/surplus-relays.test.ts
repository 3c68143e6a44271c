/** The relays that end when a plan or add-ons end. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addonsMax, relayLimit } from '../../../domain/billing/plans.ts'
import { decideSurplus, type LiveRelay } from '../../../domain/billing/surplus-relays.ts'

const noticeMillis = 30 * 60_000
const now = Date.UTC(2027, 4, 17, 12)
const paid = (addons: number) => ({ planTier: 'paid', addons }) as const
const free = { planTier: 'free', addons: 0 } as const

/** Relays `0`, `1`, …, the oldest first. */
const running = (count: number): LiveRelay[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `${index}`,
    createdAt: now - 1000 + index,
    countsAgainstLimit: true,
  }))

const stable = { planBefore: paid(1), plan: paid(1), surplusEndsAt: null, now, noticeMillis, hasTrial: false }

describe('the end of a plan', () => {
  test('ends all relays at once, also those that are stopping', () => {
    const relays = running(3).map((relay, index) => ({ ...relay, countsAgainstLimit: index !== 1 }))
    expect(decideSurplus({ ...stable, plan: free, relays, surplusEndsAt: now + 1 })).toEqual({
      surplusEndsAt: null,
      relaysToEnd: ['0', '1', '2'],
    })
  })
})

describe('an account with a trial', () => {
  const onTrial = { ...stable, planBefore: free, plan: free, hasTrial: true, relays: running(1) }

  test('keeps its relay while it gets no plan, which ends by its own time', () => {
    expect(decideSurplus(onTrial)).toEqual({ surplusEndsAt: null, relaysToEnd: [] })
  })

  test('keeps its relay under a plan, and loses all relays with that plan', () => {
    expect(decideSurplus({ ...onTrial, plan: paid(0) }).relaysToEnd).toEqual([])
    expect(decideSurplus({ ...onTrial, planBefore: paid(0) }).relaysToEnd).toEqual(['0'])
  })
})

describe('fewer add-ons', () => {
  const fewer = { ...stable, planBefore: paid(3), relays: running(4) }

  test('start a notice for the relays beyond the limit', () => {
    expect(decideSurplus(fewer)).toEqual({ surplusEndsAt: now + noticeMillis, relaysToEnd: [] })
  })

  test('end the newest relays when the notice ends, and not before', () => {
    const noticed = { ...stable, relays: running(4), surplusEndsAt: now }
    expect(decideSurplus({ ...noticed, now: now - 1 })).toEqual({ surplusEndsAt: now, relaysToEnd: [] })
    expect(decideSurplus(noticed)).toEqual({ surplusEndsAt: null, relaysToEnd: ['2', '3'] })
  })

  test('start the notice again if they decrease further', () => {
    const further = { ...stable, plan: paid(0), relays: running(4), surplusEndsAt: now }
    expect(decideSurplus(further)).toEqual({ surplusEndsAt: now + noticeMillis, relaysToEnd: [] })
  })

  test('have no effect while the relays are within the limit', () => {
    const stopping = running(3).map((relay, index) => ({ ...relay, countsAgainstLimit: index !== 0 }))
    for (const relays of [running(2), stopping, []])
      expect(decideSurplus({ ...fewer, relays })).toEqual({ surplusEndsAt: null, relaysToEnd: [] })
  })
})

test('an increase cancels the notice if all relays are within the limit, and else keeps it', () => {
  const noticed = { ...stable, plan: paid(2), relays: running(4), surplusEndsAt: now + 5 }
  expect(decideSurplus(noticed)).toEqual({ surplusEndsAt: now + 5, relaysToEnd: [] })
  expect(decideSurplus({ ...noticed, plan: paid(3) })).toEqual({ surplusEndsAt: null, relaysToEnd: [] })
})

test('of relays created at the same time the one with the lower id is the older one', () => {
  const relays = ['b', 'c', 'a'].map((id) => ({ id, createdAt: now, countsAgainstLimit: true }))
  expect(decideSurplus({ ...stable, relays, surplusEndsAt: now }).relaysToEnd).toEqual(['c'])
})

test('for any account the relays that remain are the oldest, as many as the limit allows', () => {
  const anyPlan = fc.record({ planTier: fc.constantFrom('free', 'paid'), addons: fc.nat(addonsMax + 1) })
  const anyRelays = fc.uniqueArray(
    fc.record({ id: fc.uuid(), createdAt: fc.integer({ min: now - 5, max: now }), countsAgainstLimit: fc.boolean() }),
    { selector: ({ id }) => id, maxLength: 8 },
  )
  const anyNotice = fc.option(fc.integer({ min: now - 10, max: now + 10 }))
  fc.assert(
    fc.property(
      anyPlan,
      anyPlan,
      anyRelays,
      anyNotice,
      fc.boolean(),
      (planBefore, plan, relays, surplusEndsAt, hasTrial) => {
        const decision = decideSurplus({ planBefore, plan, relays, surplusEndsAt, now, noticeMillis, hasTrial })
        const limit = relayLimit(plan)
        if (hasTrial && limit === 0 && relayLimit(planBefore) === 0) {
          expect(decision).toEqual({ surplusEndsAt: null, relaysToEnd: [] })
          return
        }
        const counted = relays.filter(({ countsAgainstLimit }) => countsAgainstLimit)
        const remaining = relays.filter(({ id }) => !decision.relaysToEnd.includes(id))
        const remainingCounted = remaining.filter(({ countsAgainstLimit }) => countsAgainstLimit)
        const hasSurplus = remainingCounted.length > limit
        expect(hasSurplus).toBe(decision.surplusEndsAt !== null)
        if (limit === 0) expect(remaining).toEqual([])
        else if (decision.relaysToEnd.length > 0) {
          expect(remainingCounted).toHaveLength(limit)
          expect(remaining.filter(({ countsAgainstLimit }) => !countsAgainstLimit)).toHaveLength(
            relays.length - counted.length,
          )
          const newestRemaining = Math.max(...remainingCounted.map(({ createdAt }) => createdAt))
          for (const { id, createdAt } of relays)
            if (decision.relaysToEnd.includes(id)) expect(createdAt).toBeGreaterThanOrEqual(newestRemaining)
        }
        if (decision.surplusEndsAt !== null) expect(decision.surplusEndsAt).toBeGreaterThan(now)
      },
    ),
  )
})
