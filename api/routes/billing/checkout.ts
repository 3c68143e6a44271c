/** Checkout, and the account's plan as last written by its subscription workflow. */
import { z } from 'zod'
import { listSubscriptions } from '../../../db/billing/account-subscriptions.ts'
import { findCustomerId } from '../../../db/billing/customers.ts'
import { findPlan, isLastPaymentFailed, type PlanRow } from '../../../db/billing/subscriptions.ts'
import { findProfile } from '../../../db/identity/profiles.ts'
import { addonsMax, planStatuses, planTiers } from '../../../domain/billing/plans.ts'
import type { CheckoutRequest } from '../../../providers/billing/provider.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'
import { findManageUrl, isBrowserUrl } from './portal.ts'
import { presentSubscriptions, SubscriptionView } from './subscriptions.ts'

const CheckoutBody = z
  .object({ plan: z.literal('paid').optional(), addons: z.int().min(1).max(addonsMax).optional() })
  .refine((body) => (body.plan === undefined) !== (body.addons === undefined), 'must have either plan or addons')

export const checkout = route.user({
  id: 'createCheckout',
  summary: 'Create a payment page',
  description:
    "Creates a payment page at the billing provider and returns its address for the browser. Nothing changes until the provider's webhook arrives. `addons` is the total that the account should have; the page sells the missing ones. Refused with `already_subscribed` if nothing is missing.",
  body: CheckoutBody,
  answers: { 200: z.object({ checkout_url: z.url() }) },
  refuses: ['already_subscribed', 'billing_provider_error', 'forbidden'],
  examples: {
    requests: {
      plan: { summary: 'Buy the plan', value: { plan: 'paid' } },
      addons: { summary: 'Have two add-ons', value: { addons: 2 } },
    },
    replies: {
      200: {
        page: {
          summary: 'A payment page',
          value: { checkout_url: 'https://relay.example.com/sandbox/checkout?session=cs_1042' },
        },
      },
    },
  },
  handle: async ({ caller, body }, services) => {
    const { sql, config, billing, log } = services
    const [plan, profile, customerId] = await Promise.all([
      findPlan(sql, caller.userId),
      findProfile(sql, caller.userId),
      findCustomerId(sql, billing.provider.name, caller.userId),
    ])
    if (!plan || !profile) throw new Refusal('unauthorized')
    if (profile.deletionDueAt)
      throw new Refusal('forbidden', { message: 'This account is going to be deleted. Restore it first.' })
    const request = {
      userId: caller.userId,
      email: profile.email,
      // The page only shows a notice. The plan changes when the webhook arrives.
      returnUrl: `${config.siteUrl}/account?done=bought`,
      cancelUrl: `${config.siteUrl}/account`,
      customerId,
      ...findMissing(plan, body),
    }
    try {
      return ok({ checkout_url: checkUrl(await billing.provider.checkout(request), config.siteUrl) })
    } catch (error) {
      if (!(error instanceof BillingProviderError)) throw error
      log.error({ err: error }, 'a checkout could not be created at the billing provider')
      throw new Refusal('billing_provider_error')
    }
  },
})

/** Throws unless the URL is HTTPS or a page of the site. */
function checkUrl(url: string, siteUrl: string): string {
  if (!isBrowserUrl(url, siteUrl))
    throw new BillingProviderError('the checkout URL is neither HTTPS nor a page of the site')
  return url
}

/** The product to buy. Refuses with `already_subscribed` if nothing is missing. */
function findMissing(plan: PlanRow, body: z.infer<typeof CheckoutBody>): Pick<CheckoutRequest, 'kind' | 'quantity'> {
  if (body.addons !== undefined) {
    const quantity = body.addons - plan.addons
    if (quantity <= 0) throw new Refusal('already_subscribed')
    return { kind: 'addon', quantity }
  }
  if (plan.planTier === 'paid' && !isEnding(plan)) throw new Refusal('already_subscribed')
  return { kind: 'plan', quantity: 1 }
}

/**
 * Whether the plan ends at a known time: it is cancelled, or complimentary with an end. A new plan may be bought before
 * that. A complimentary plan without an end makes a bought one pointless.
 */
const isEnding = ({ planStatus, endsAt }: PlanRow): boolean =>
  planStatus === 'cancelled' || (planStatus === 'active' && endsAt !== null)

export const subscription = route.user({
  id: 'getPlan',
  summary: 'Show the plan',
  description:
    'The plan with its add-ons, when it renews or ends, and the subscriptions at billing providers that have not ended.',
  answers: {
    200: z.object({
      plan_tier: z.enum(planTiers),
      plan_status: z.enum(planStatuses),
      addons: z.int(),
      renews_at: timestamp.nullable(),
      ends_at: timestamp.nullable(),
      grace_ends_at: timestamp.nullable(),
      manage_url: z.url().nullable(),
      last_payment_failed: z
        .boolean()
        .describe('Whether the latest payment for a plan failed. Stays true after the plan ended because of it.'),
      /** Subscriptions at billing providers that have not ended. */
      subscriptions: z.array(SubscriptionView),
    }),
  },
  refuses: [],
  handle: async ({ caller }, services) => {
    const [plan, hasFailed, subscriptions] = await Promise.all([
      findPlan(services.sql, caller.userId),
      isLastPaymentFailed(services.sql, caller.userId),
      listSubscriptions(services.sql, caller.userId, { withoutEnded: true }),
    ])
    if (!plan) throw new Refusal('unauthorized')
    return ok({
      plan_tier: plan.planTier,
      plan_status: plan.planStatus,
      addons: plan.addons,
      renews_at: plan.planStatus === 'active' && plan.endsAt === null ? formatDate(plan.periodEnd) : null,
      ends_at: formatDate(plan.endsAt),
      grace_ends_at: formatDate(plan.graceEndsAt),
      manage_url: plan.hasSubscriptions ? await findManageUrl(caller.userId, services) : null,
      last_payment_failed: hasFailed,
      subscriptions: presentSubscriptions(subscriptions, plan.planTier, services),
    })
  },
})

const formatDate = (date: Date | null): string | null => date?.toISOString() ?? null
