/** Billing metrics: events that this process received, and accounts by plan, read from Postgres. */
import { Counter, Gauge, type Registry } from 'prom-client'
import { countAccountsByPlan, countUnusedBilling } from '../../db/billing/account-figures.ts'
import { countBilledOfErasedAccounts } from '../../db/billing/erased-account-subscriptions.ts'
import { countOpenWithdrawals } from '../../db/billing/withdrawals.ts'
import type { Sql } from '../../db/connection.ts'
import type { BillingEventAction, BillingEventStatus, BillingSource } from '../../domain/billing/event.ts'

interface CountedEvent {
  readonly provider: BillingSource
  /** `none` if the event could not be interpreted. */
  readonly action: BillingEventAction | 'none'
  /** The status that the event was stored with, or why it was not stored. */
  readonly outcome: BillingEventStatus | 'repeated' | 'invalid_signature'
}

export interface BillingMetrics {
  countEvent(event: CountedEvent): void
  /** @param type the provider's name of the event type, of a bounded set. */
  countIgnored(event: { readonly provider: BillingSource; readonly type: string }): void
}

export function createBillingMetrics(registry: Registry): BillingMetrics {
  const events = new Counter({
    name: 'svc_billing_events_total',
    help: 'Received billing events by their status when they were stored.',
    labelNames: ['provider', 'action', 'outcome'],
    registers: [registry],
  })
  const ignored = new Counter({
    name: 'svc_billing_events_ignored_total',
    help: 'Received billing events without an effect, by their type; other for types that are not known.',
    labelNames: ['provider', 'type'],
    registers: [registry],
  })
  return { countEvent: (event) => events.inc({ ...event }), countIgnored: (event) => ignored.inc({ ...event }) }
}

const plans = [
  { plan_tier: 'free', plan_status: 'none' },
  { plan_tier: 'paid', plan_status: 'active' },
  { plan_tier: 'paid', plan_status: 'past_due' },
  { plan_tier: 'paid', plan_status: 'cancelled' },
] as const

/** Reads the figures. @returns a function that adds them to a registry. */
export async function readAccountGauges(sql: Sql): Promise<(registry: Registry) => void> {
  const [byPlan, billed, erased, open] = await Promise.all([
    countAccountsByPlan(sql),
    countUnusedBilling(sql),
    countBilledOfErasedAccounts(sql),
    countOpenWithdrawals(sql),
  ])
  return (registry) => {
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name, help, labelNames, registers: [registry] })
    const accounts = gauge('svc_accounts', 'Accounts by plan.', ['plan_tier', 'plan_status'])
    for (const plan of plans) accounts.set(plan, 0)
    for (const { planTier, planStatus, accounts: count } of byPlan)
      accounts.set({ plan_tier: planTier, plan_status: planStatus }, count)
    gauge('svc_billing_addons_without_plan', 'Add-ons that are billed to accounts without a plan.').set(
      billed.addonsWithoutPlan,
    )
    gauge('svc_billing_accounts_with_two_plans', 'Accounts that are billed for more than one plan.').set(
      billed.accountsWithTwoPlans,
    )
    gauge('svc_billing_erased_accounts_billed', 'Subscriptions of erased accounts that are to be cancelled.').set(
      erased,
    )
    gauge('svc_billing_withdrawals_open', 'Withdrawals from contracts that are to be refunded.').set(open.withdrawals)
    gauge('svc_billing_withdrawal_open_seconds', 'The age of the oldest of them.').set(open.oldestSeconds)
  }
}
