/** The Time Bank: relay time that is included and used in the current cycle. */
import { z } from 'zod'
import { type EntitlementWithUsage, findEntitlementsWithUsage } from '../../db/entitlements.ts'
import { usageEnforcements } from '../../domain/usage-cycle.ts'
import type { Config } from '../../platform/config/config.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { timestamp } from '../http/schemas.ts'

/** Seconds are integers: clients parse them as 32-bit numbers. */
export const UsageView = z.object({
  cycle_start: timestamp,
  cycle_end: timestamp,
  included_seconds: z.int(),
  consumed_seconds: z.int(),
  remaining_seconds: z.int(),
  overage_seconds: z.int(),
  active_sessions: z.int(),
  enforcement: z.enum(usageEnforcements),
  as_of: timestamp,
})

export function presentUsage(
  { usage, entitlement: { includedSeconds: included } }: EntitlementWithUsage,
  { enforcement }: Config['timeBank'],
): z.infer<typeof UsageView> {
  return {
    cycle_start: usage.cycleStart.toISOString(),
    cycle_end: usage.cycleEnd.toISOString(),
    included_seconds: included,
    consumed_seconds: usage.consumedSeconds,
    remaining_seconds: Math.max(0, included - usage.consumedSeconds),
    overage_seconds: Math.max(0, usage.consumedSeconds - included),
    active_sessions: usage.activeSessions,
    enforcement,
    as_of: usage.asOf.toISOString(),
  }
}

export const current = route({
  method: 'GET',
  path: '/usage/current',
  summary: 'Show the relay time of the current cycle',
  caller: 'user',
  limit: 'usage',
  answers: { 200: UsageView },
  refuses: [],
  handle: async ({ caller }, { sql, config }) => {
    const account = (await findEntitlementsWithUsage(sql, [caller.userId], config.timeBank)).get(caller.userId)
    if (!account) throw new Refusal('unauthorized')
    return ok(presentUsage(account, config.timeBank))
  },
})
