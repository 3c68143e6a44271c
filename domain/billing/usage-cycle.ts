/**
 * The Time Bank's rules: a plan includes relay time for each cycle, which is the billing period of the plan or a month.
 * Times are milliseconds since 1970, months are counted in UTC.
 */
import type { PlanTier } from './plans.ts'

/** `enforce` refuses new relays once the included relay time is used up; `report` only shows it. */
export const usageEnforcements = ['report', 'enforce'] as const
export type UsageEnforcement = (typeof usageEnforcements)[number]

/** The account's owner is notified once when this share of the included relay time is used. */
export const usageNoticePercents = [80, 95, 100] as const
export type UsageNoticePercent = (typeof usageNoticePercents)[number]

export interface UsageCycle {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

interface BilledPlan {
  readonly planTier: PlanTier
  /** The latest billing period. The provider may state only its end. */
  readonly periodStart: number | null
  readonly periodEnd: number | null
}

/**
 * The cycle at `now`: the billing period of a paid plan. While that period is over or has not started, as when its
 * renewal is late, months are counted from it. Without a period it is the calendar month. Months from the 31st end on
 * the last day of shorter months, and on the 31st again in the others.
 */
export function usageCycleAt(now: number, { planTier, periodStart, periodEnd }: BilledPlan): UsageCycle {
  if (planTier === 'free' || periodEnd === null) return monthAt(now, startOfMonth(now))
  if (periodStart !== null && now < periodStart) return monthAt(now, periodStart)
  if (periodStart !== null && now < periodEnd) return { start: periodStart, end: periodEnd }
  return monthAt(now, periodEnd)
}

/**
 * The month that contains `now`, of the months that start at `anchor`, a month after it, a month before it, and so on.
 */
function monthAt(now: number, anchor: number): UsageCycle {
  const [current, first] = [new Date(now), new Date(anchor)]
  const months = (current.getUTCFullYear() - first.getUTCFullYear()) * 12 + current.getUTCMonth() - first.getUTCMonth()
  const passed = addMonths(anchor, months) > now ? months - 1 : months
  return { start: addMonths(anchor, passed), end: addMonths(anchor, passed + 1) }
}

function addMonths(time: number, months: number): number {
  const date = new Date(time)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  return date.setUTCDate(Math.min(day, lastDay))
}

function startOfMonth(time: number): number {
  const date = new Date(time)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/** The relay time that a plan includes in one cycle, shared by all of its relays. */
export const includedSeconds = (relayLimit: number, hoursPerRelay: number): number => hoursPerRelay * 3600 * relayLimit

/** The notices that are due for an account, earlier ones included. None for a plan without relay time. */
export const dueUsageNotices = (consumedSeconds: number, included: number): UsageNoticePercent[] =>
  included === 0 ? [] : usageNoticePercents.filter((percent) => consumedSeconds * 100 >= included * percent)
