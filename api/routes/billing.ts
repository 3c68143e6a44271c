/** Buying, and what was bought. Who has paid for what is the subscription actor's judgement; here it is only read. */
import { z } from 'zod'
import { listSubscriptions } from '../../db/account-subscriptions.ts'
import { findCustomerId } from '../../db/billing-customers.ts'
import { findProfile } from '../../db/profiles.ts'
import { findPlan, type PlanRow } from '../../db/subscriptions.ts'
import type { CheckoutRequest } from '../../providers/billing/provider.ts'
import { BillingProviderError } from '../../providers/billing/provider.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { timestamp } from '../http/schemas.ts'
import { findManageUrl, isForBrowsers } from './billing-portal.ts'
import { presentSubscriptions, SubscriptionView } from './billing-subscriptions.ts'

const Wanted = z
  .object({ plan: z.literal('paid').optional(), addons: z.int().min(1).max(3).optional() })
  .refine((wanted) => (wanted.plan === undefined) !== (wanted.addons === undefined), 'ask for a plan or for add-ons')

export const checkout = route({
  method: 'POST',
  path: '/billing/checkout',
  summary: 'The address of a page where the plan is paid for, or as many add-ons as are wanted in all',
  caller: 'user',
  limit: 'checkout',
  body: Wanted,
  answers: { 200: z.object({ checkout_url: z.url() }) },
  refuses: ['already_subscribed', 'billing_provider_error'],
  handle: async ({ caller, body }, services) => {
    const { sql, config, billing, log } = services
    const [plan, profile, customerId] = await Promise.all([
      findPlan(sql, caller.userId),
      findProfile(sql, caller.userId),
      findCustomerId(sql, billing.provider.name, caller.userId),
    ])
    if (!plan || !profile) throw new Refusal('unauthorized')
    const request = {
      userId: caller.userId,
      email: profile.email,
      // The page then says that it may take a moment. EmptyObject else is made of it: what counts is the webhook.
      returnUrl: `${config.siteUrl}/account?done=bought`,
      cancelUrl: `${config.siteUrl}/account`,
      customerId,
      ...missing(plan, body),
    }
    try {
      return ok({ checkout_url: payPage(await billing.provider.checkout(request), config.siteUrl) })
    } catch (error) {
      if (!(error instanceof BillingProviderError)) throw error
      log.error({ err: error }, 'the billing provider gave no checkout')
      throw new Refusal('billing_provider_error')
    }
  },
})

/** The address, where a browser may be sent there: over HTTPS, or to a page of our site. */
function payPage(url: string, siteUrl: string): string {
  if (!isForBrowsers(url, siteUrl)) throw new BillingProviderError('the checkout is at no address for browsers')
  return url
}

/** What is left to buy. Refuses with `already_subscribed` when that is nothing. */
function missing(plan: PlanRow, wanted: z.infer<typeof Wanted>): Pick<CheckoutRequest, 'kind' | 'quantity'> {
  if (wanted.addons !== undefined) {
    const quantity = wanted.addons - plan.addons
    if (quantity <= 0) throw new Refusal('already_subscribed')
    return { kind: 'addon', quantity }
  }
  if (plan.planTier === 'paid' && !isEnding(plan)) throw new Refusal('already_subscribed')
  return { kind: 'plan', quantity: 1 }
}

/**
 * Whether the plan ends by itself: it was cancelled, or is complimentary until a day and no other one is paid for. Then a new one
 * may be bought before that. Beside a complimentary plan without an end a bought one would bring nothing.
 */
const isEnding = ({ planStatus, endsAt }: PlanRow): boolean =>
  planStatus === 'cancelled' || (planStatus === 'active' && endsAt !== null)

export const subscription = route({
  method: 'GET',
  path: '/billing/subscription',
  summary: 'The plan with its add-ons, and what becomes of it when',
  caller: 'user',
  answers: {
    200: z.object({
      plan_tier: z.enum(['free', 'paid']),
      plan_status: z.enum(['none', 'active', 'past_due', 'cancelled']),
      addons: z.int(),
      renews_at: timestamp.nullable(),
      ends_at: timestamp.nullable(),
      grace_ends_at: timestamp.nullable(),
      manage_url: z.url().nullable(),
      /** At the billing provider, those that have not ended. */
      subscriptions: z.array(SubscriptionView),
    }),
  },
  refuses: [],
  handle: async ({ caller }, services) => {
    const [plan, subscriptions] = await Promise.all([
      findPlan(services.sql, caller.userId),
      listSubscriptions(services.sql, caller.userId, { withoutEnded: true }),
    ])
    if (!plan) throw new Refusal('unauthorized')
    return ok({
      plan_tier: plan.planTier,
      plan_status: plan.planStatus,
      addons: plan.addons,
      renews_at: plan.planStatus === 'active' && plan.endsAt === null ? textOf(plan.periodEnd) : null,
      ends_at: textOf(plan.endsAt),
      grace_ends_at: textOf(plan.graceEndsAt),
      manage_url: plan.hasSubscriptions ? await findManageUrl(caller.userId, services) : null,
      subscriptions: presentSubscriptions(subscriptions, plan.planTier, services),
    })
  },
})

const textOf = (date: Date | null): string | null => date?.toISOString() ?? null
