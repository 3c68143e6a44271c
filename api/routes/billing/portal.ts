/**
 * The page where a customer manages payments: the provider's page for this customer if it has one, or a configured URL.
 */
import { z } from 'zod'
import { findCustomerId } from '../../../db/billing/customers.ts'
import { findPlan } from '../../../db/billing/subscriptions.ts'
import { findProfile } from '../../../db/identity/profiles.ts'
import { BillingProviderError } from '../../../providers/billing/provider.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import type { Services } from '../../services.ts'
import { route } from '../route.ts'

export const open = route.user({
  id: 'createPortalLink',
  summary: 'Open the page for payments',
  description:
    'Returns the address of a page where the caller manages payments. It is personal and expires within minutes: request it when the user opens it. 404 without subscriptions.',
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
    const url = (await requestPortal(caller.userId, verifiedEmail, services)) ?? services.config.billing.portalUrl
    if (url === undefined) throw new Refusal('billing_provider_error')
    return ok({ portal_url: url })
  },
})

/** Undefined if the provider has no page for this customer, fails, or returns an unusable URL. */
async function requestPortal(
  userId: string,
  verifiedEmail: string | undefined,
  { sql, config, billing, log }: Services,
): Promise<string | undefined> {
  const customerId = await findCustomerId(sql, billing.provider.name, userId)
  const returnUrl = `${config.siteUrl}/account`
  try {
    const url = await billing.provider.portal({ customerId, verifiedEmail, returnUrl })
    if (url !== undefined && !isBrowserUrl(url, config.siteUrl))
      throw new BillingProviderError('the portal URL is neither HTTPS nor a page of the site')
    return url
  } catch (error) {
    if (!(error instanceof BillingProviderError)) throw error
    log.error({ err: error }, 'a portal page could not be requested from the billing provider')
    return undefined
  }
}

/** Whether the URL is HTTPS or a page of the site. */
export const isBrowserUrl = (url: string, siteUrl: string): boolean =>
  url.startsWith('https://') || url.startsWith(`${siteUrl}/`)

/**
 * The page for managing payments. A personal URL expires within minutes, so this names a page of the site that requests
 * one on demand.
 */
export async function findManageUrl(userId: string, { sql, config, billing }: Services): Promise<string | null> {
  if (billing.sandbox) return `${config.siteUrl}/sandbox/subscriptions`
  const customerId = await findCustomerId(sql, billing.provider.name, userId)
  return customerId === undefined ? (config.billing.portalUrl ?? null) : `${config.siteUrl}/account/payments`
}
