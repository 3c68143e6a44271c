/** The cycle of relay time, and the notices that are due in it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dueUsageNotices, includedSeconds, type UsageCycle, usageCycleAt } from '../../../domain/billing/usage-cycle.ts'

const day = 86_400_000
const millisOf = (text: string | null | undefined) => (text ? Date.parse(text) : null)
const paidPlan = (periodStart: number | null, periodEnd: number | null) =>
  ({ planTier: 'paid', periodStart, periodEnd }) as const

const anyTime = fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2040, 0, 1) })
const anyPlan = fc
  .record({
    planTier: fc.constantFrom('free' as const, 'paid' as const),
    periodStart: fc.option(anyTime),
    periodEnd: fc.option(anyTime),
    periodMillis: fc.integer({ min: 1, max: 400 * day }),
  })
  .map(({ periodMillis, periodEnd, ...plan }) => ({
    ...plan,
    periodEnd: plan.periodStart !== null && periodEnd !== null ? plan.periodStart + periodMillis : periodEnd,
  }))

function searchCycle(
  now: number,
  { planTier, periodStart, periodEnd }: Parameters<typeof usageCycleAt>[1],
): UsageCycle {
  const isPaid = planTier === 'paid'
  if (isPaid && periodStart !== null && periodEnd !== null && periodStart <= now && now < periodEnd)
    return { start: periodStart, end: periodEnd }
  const calendarMonth = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth(), 1)
  const nextPeriod = periodStart !== null && now < periodStart ? periodStart : periodEnd
  const anchor = isPaid && periodEnd !== null && nextPeriod !== null ? nextPeriod : calendarMonth
  let months = 0
  while (monthsAfter(anchor, months + 1) <= now) months += 1
  while (monthsAfter(anchor, months) > now) months -= 1
  return { start: monthsAfter(anchor, months), end: monthsAfter(anchor, months + 1) }
}

/** The same day and time so many months later, or the last day of a shorter month. */
function monthsAfter(time: number, months: number): number {
  const date = new Date(time)
  const month = date.getUTCFullYear() * 12 + date.getUTCMonth() + months
  const firstDay = Date.UTC(Math.floor(month / 12), ((month % 12) + 12) % 12, 1)
  const lastDay = Date.UTC(Math.floor((month + 1) / 12), (((month + 1) % 12) + 12) % 12, 1) - day
  return Math.min(firstDay + (date.getUTCDate() - 1) * day, lastDay) + (time % day)
}

describe('the usage cycle', () => {
  const [start, end] = ['2027-04-10T08:30Z', '2027-05-10T08:30Z']
  test.each([
    // Now, the plan's period, and the cycle.
    ['starts with the billing period', start, [start, end], [start, end]],
    ['lasts until the end of the billing period', '2027-05-10T08:29:59.999Z', [start, end], [start, end]],
    ['is the month after the billing period if the renewal is late', end, [start, end], [end, '2027-06-10T08:30Z']],
    [
      'is a later month from the billing period',
      '2027-12-24',
      [start, end],
      ['2027-12-10T08:30Z', '2028-01-10T08:30Z'],
    ],
    ['is the month before a future billing period', '2027-04-10', [start, end], ['2027-03-10T08:30Z', start]],
    ['is a year for a yearly plan', '2027-10-01', ['2027-01-31', '2028-01-31'], ['2027-01-31', '2028-01-31']],
    ['is the month before the only known end', '2027-03-15', [null, '2027-03-31'], ['2027-02-28', '2027-03-31']],
    ['is an earlier month before the only known end', '2027-07-31', [null, '2028-01-31'], ['2027-07-31', '2027-08-31']],
    ['is the calendar month if only a start is known', '2027-04-15', [start, null], ['2027-04-01', '2027-05-01']],
    ['is the calendar month without a period', '2027-12-31T23:59:59.999Z', [null, null], ['2027-12-01', '2028-01-01']],
    [
      'from the 31st ends on the last day of a short month',
      '2027-02-27',
      [null, '2027-01-31'],
      ['2027-01-31', '2027-02-28'],
    ],
    [
      'from the 31st starts on the last day of a short month',
      '2027-02-28',
      [null, '2027-01-31'],
      ['2027-02-28', '2027-03-31'],
    ],
    ['from the 31st starts on a 31st again', '2027-03-31', [null, '2027-01-31'], ['2027-03-31', '2027-04-30']],
    ['from the 31st ends on a leap day', '2028-02-28T23:59Z', [null, '2028-01-31'], ['2028-01-31', '2028-02-29']],
    [
      'from a leap day starts on the 28th in other years',
      '2029-02-28',
      [null, '2028-02-29'],
      ['2029-02-28', '2029-03-29'],
    ],
    ['from a leap day starts on the next leap day', '2032-02-29', [null, '2028-02-29'], ['2032-02-29', '2032-03-29']],
  ])('%s', (_, now, [periodStart, periodEnd], cycle) => {
    const plan = paidPlan(millisOf(periodStart), millisOf(periodEnd))
    expect(usageCycleAt(Date.parse(now), plan)).toEqual({ start: millisOf(cycle[0]), end: millisOf(cycle[1]) })
  })

  test('is the calendar month for the free tier, also with an old period', () => {
    const plan = { planTier: 'free', periodStart: Date.parse(start), periodEnd: Date.parse(end) } as const
    expect(usageCycleAt(Date.parse('2027-04-15'), plan)).toEqual({
      start: Date.UTC(2027, 3, 1),
      end: Date.UTC(2027, 4, 1),
    })
  })

  test('contains the present, is as long as a month or the period, and adjoins the next cycle', () => {
    fc.assert(
      fc.property(anyTime, anyPlan, (now, plan) => {
        const cycle = usageCycleAt(now, plan)
        expect(cycle.start).toBeLessThanOrEqual(now)
        expect(cycle.end).toBeGreaterThan(now)
        const isPeriod = cycle.start === plan.periodStart && cycle.end === plan.periodEnd
        if (!isPeriod) expectMonth(cycle)
        expect(usageCycleAt(cycle.start, plan)).toEqual(cycle)
        expect(usageCycleAt(cycle.end - 1, plan)).toEqual(cycle)
        expect(usageCycleAt(cycle.end, plan).start).toBe(cycle.end)
      }),
      { numRuns: 1000 },
    )
  })

  test('is the one that is found month by month from the billing period', () => {
    fc.assert(
      fc.property(anyTime, anyPlan, (now, plan) => {
        expect(usageCycleAt(now, plan)).toEqual(searchCycle(now, plan))
      }),
      { numRuns: 1000 },
    )
  })
})

function expectMonth({ start, end }: UsageCycle) {
  expect(end - start).toBeGreaterThanOrEqual(28 * day)
  expect(end - start).toBeLessThanOrEqual(31 * day)
}

test('the included relay time is that of all relays of the plan', () => {
  expect(includedSeconds(4, 200)).toBe(4 * 200 * 3600)
  expect(includedSeconds(0, 200)).toBe(0)
})

test.each([
  [79.9, []],
  [80, [80]],
  [99.9, [80, 95]],
  [250, [80, 95, 100]],
])('with %d percent used the notices %j are due', (percent, notices) => {
  expect(dueUsageNotices(percent * 10, 1000)).toEqual(notices)
  expect(dueUsageNotices(percent * 10, 0)).toEqual([])
})
