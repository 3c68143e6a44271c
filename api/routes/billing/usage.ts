/** The Time Bank: relay time that is included and used in the current cycle. */
import { z } from 'zod'
import { type EntitlementWithUsage, findEntitlementsWithUsage } from '../../../db/billing/entitlements.ts'
import { findUsageByDay } from '../../../db/billing/usage-days.ts'
import { readSnapshot } from '../../../db/connection.ts'
import { usageEnforcements } from '../../../domain/billing/usage-cycle.ts'
import { type ConnectionSeconds, sumByConnection } from '../../../domain/billing/usage-days.ts'
import { forecastExhaustion, forecastUsage } from '../../../domain/billing/usage-forecast.ts'
import type { Config } from '../../../platform/config/config.ts'
import { present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { timestamp } from '../../http/schemas.ts'
import { presentTrial, TrialView } from '../../views/trial.ts'
import { route } from '../route.ts'

/** Seconds are integers: clients parse them as 32-bit numbers. */
export const UsageView = z
  .object({
    cycle_start: timestamp,
    cycle_end: timestamp,
    included_seconds: z.int(),
    consumed_seconds: z.int(),
    remaining_seconds: z.int(),
    overage_seconds: z.int(),
    active_sessions: z.int(),
    enforcement: z.enum(usageEnforcements),
    as_of: timestamp,
    trial: TrialView,
  })
  .meta({ id: 'Usage' })

export function presentUsage(
  { usage, entitlement: { includedSeconds: included, trial } }: EntitlementWithUsage,
  { enforcement }: Config['timeBank'],
): z.infer<typeof UsageView> {
  return present(UsageView, {
    ...usage,
    includedSeconds: included,
    remainingSeconds: Math.max(0, included - usage.consumedSeconds),
    overageSeconds: Math.max(0, usage.consumedSeconds - included),
    enforcement,
    trial: presentTrial(trial),
  })
}

export const current = route.user({
  id: 'getUsage',
  summary: 'Show the relay time of the cycle',
  description:
    'The relay time of the current cycle: the billing period of the plan, or the calendar month in UTC. `enforcement` says whether starts are refused once it is used up; running relays continue in any case. In a free test time the included time is what was used and what remains, and the relay ends with it.',
  answers: { 200: UsageView },
  refuses: [],
  handle: async ({ caller }, { sql, config }) => {
    const account = (await findEntitlementsWithUsage(sql, [caller.userId], config.timeBank)).get(caller.userId)
    if (!account) throw new Refusal('unauthorized')
    return ok(presentUsage(account, config.timeBank))
  },
})

const ConnectionUsage = z.object({
  connection_id: z
    .string()
    .nullable()
    .describe('Null for all connections besides the four with the most relay time in the cycle.'),
  seconds: z.int(),
})

const presentConnections = (connections: readonly ConnectionSeconds[]) =>
  connections.map((row) => present(ConnectionUsage, row))

export const days = route.user({
  id: 'getUsageByDay',
  summary: 'Show the relay time of the cycle by day',
  description:
    'The relay time of the current cycle for each day in UTC and each connection, with a forecast to the end of the cycle at the average pace so far.',
  answers: {
    200: UsageView.extend({
      forecast_seconds: z
        .int()
        .nullable()
        .describe('Relay time at the end of the cycle at its average pace so far. Null on the first day of a cycle.'),
      exhausted_at: timestamp
        .nullable()
        .describe('When the included relay time is used up at that pace. Null when it lasts, or is used up already.'),
      connections: z.array(ConnectionUsage).describe('The sums of the cycle.'),
      days: z
        .array(z.object({ day: z.iso.date(), seconds: z.int(), connections: z.array(ConnectionUsage) }))
        .describe('Days in UTC that have relay time. They add up to `consumed_seconds`.'),
    }),
  },
  refuses: [],
  handle: async ({ caller }, { sql, config }) => {
    const found = await readSnapshot(sql, (tx) => findUsageByDay(tx, caller.userId, config.timeBank))
    if (!found) throw new Refusal('unauthorized')
    const { account, days } = found
    const usage = presentUsage(account, config.timeBank)
    return ok({
      ...usage,
      ...presentForecast(usage),
      connections: presentConnections(sumByConnection(days)),
      days: days.map((day) => ({ ...day, connections: presentConnections(day.connections) })),
    })
  },
})

function presentForecast(usage: z.infer<typeof UsageView>) {
  const cycle = { start: Date.parse(usage.cycle_start), end: Date.parse(usage.cycle_end) }
  const now = Date.parse(usage.as_of)
  const amounts = { consumedSeconds: usage.consumed_seconds, includedSeconds: usage.included_seconds }
  const exhaustedAt = forecastExhaustion(cycle, now, amounts)
  return {
    forecast_seconds: forecastUsage(cycle, now, usage.consumed_seconds),
    exhausted_at: exhaustedAt === null ? null : new Date(exhaustedAt).toISOString(),
  }
}
