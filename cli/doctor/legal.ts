/** The legal pages that a public site needs. */
import { isSeller } from '../../domain/billing/withdrawal.ts'
import type { Config } from '../../platform/config/config.ts'
import { isLoopback } from '../../platform/config/mail-values.ts'
import { type Finding, ok, warn } from './check.ts'

/** A site that others reach has to say who runs it and on what terms. One on this machine does not. */
export async function checkLegalPages({
  billing,
  legal,
  siteUrl,
}: Pick<Config, 'billing' | 'legal' | 'siteUrl'>): Promise<Finding> {
  if (isLoopback(new URL(siteUrl).hostname)) return ok(`${siteUrl} is for this machine, which needs none`)
  const needsForm = billing.withdrawal.isOffered && isSeller(billing.provider)
  const missing = [
    ['SVC_TERMS_URL', legal.terms],
    ['SVC_PRIVACY_URL', legal.privacyUrl],
    ['SVC_IMPRINT_URL', legal.imprintUrl],
    ['SVC_REFUND_URL', legal.refundUrl],
    ['SVC_ABUSE_CONTACT', legal.abuseContact],
    ['SVC_WITHDRAWAL_URL', needsForm ? billing.withdrawal.formUrl : 'not needed'],
  ].flatMap(([name, value]) => (value === undefined ? [name] : []))
  if (missing.length === 0) return ok('terms, privacy, imprint, refunds and abuse contact are set')
  const names = missing.join(', ')
  return warn(
    `${siteUrl} is public and lacks ${names}`,
    `Set ${names} for all programs (docs/operating.md, Legal pages): the site links to them.`,
  )
}
