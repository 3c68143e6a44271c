/** Leads people to where they manage payments: a page of the provider's for this one customer, where it has one. */
import { z } from 'zod'
import { findCustomerId } from '../../db/billing-customers.ts'
import { findProfile } from '../../db/profiles.ts'
import { findPlan } from '../../db/subscriptions.ts'
import { BillingProviderError } from '../../providers/billing/provider.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import type { Services } from '../services.ts'

export const open = route({
  method: 'POST',
  path: '/billing/portal',
  summary: 'The address of a page where the caller manages payments. It is personal, and works for a few minutes',
  caller: 'user',
  limit: 'billing_manage',
  secret: true,
  answers: { 200: z.object({ portal_url: z.url() }) },
  refuses: ['not_found', 'billing_provider_error'],
  handle: async ({ caller }, services) => {
    const [plan, profile] = await Promise.all([
      findPlan(services.sql, caller.userId),
      findProfile(services.sql, caller.userId),
    ])
    if (!plan || !profile) throw new Refusal('unauthorized')
    if (!plan.hasSubscriptions) throw new Refusal('not_found')
    const verifiedEmail = profile.isEmailVerified ? (profile.email ?? undefined) : undefined
    const url = (await openPersonalPortal(caller.userId, verifiedEmail, services)) ?? services.config.billing.portalUrl
    if (url === undefined) throw new Refusal('billing_provider_error')
    return ok({ portal_url: url })
  },
})

/** EmptyObject when the provider has no page for this customer, does not answer, or answers no address for browsers. */
async function openPersonalPortal(
  userId: string,
  verifiedEmail: string | undefined,
  { sql, config, billing, log }: Services,
): Promise<string | undefined> {
  const customerId = await findCustomerId(sql, billing.provider.name, userId)
  const returnUrl = `${config.siteUrl}/account`
  try {
    const url = await billing.provider.portal({ customerId, verifiedEmail, returnUrl })
    if (url !== undefined && !isForBrowsers(url, config.siteUrl))
      throw new BillingProviderError('the portal is at no address for browsers')
    return url
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    log.error({ err: error }, 'the billing provider gave no portal')
    return undefined
  }
}

/** Over HTTPS, or a page of our site. */
export const isForBrowsers = (url: string, siteUrl: string): boolean =>
  url.startsWith('https://') || url.startsWith(`${siteUrl}/`)

/**
 * Where clients lead people to manage payments. A personal address expires within minutes, so it is requested on demand, by the
 * page of our site that this names.
 */
export async function findManageUrl(userId: string, { sql, config, billing }: Services): Promise<string | null> {
  if (billing.sandbox) return `${config.siteUrl}/sandbox/subscriptions`
  const customerId = await findCustomerId(sql, billing.provider.name, userId)
  return customerId === undefined ? (config.billing.portalUrl ?? null) : `${config.siteUrl}/account/payments`
}
