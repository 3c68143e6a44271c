/** The legal pages of the operator, which the site links to. */
import type { Values } from './variables.ts'

/** What pages link to. Undefined for what is not set. */
export interface LegalPages {
  /** The terms and their version, which a sign-up accepts. */
  readonly terms: { readonly url: string; readonly version: string } | undefined
  readonly privacyUrl: string | undefined
  readonly imprintUrl: string | undefined
  readonly refundUrl: string | undefined
  /** An email address, or a URL. */
  readonly abuseContact: string | undefined
}

type LegalVariables = Pick<
  Values,
  'SVC_TERMS_URL' | 'SVC_TERMS_VERSION' | 'SVC_PRIVACY_URL' | 'SVC_IMPRINT_URL' | 'SVC_REFUND_URL' | 'SVC_ABUSE_CONTACT'
>

export const legalPages = (v: LegalVariables): LegalPages => ({
  terms:
    v.SVC_TERMS_URL === undefined || v.SVC_TERMS_VERSION === undefined
      ? undefined
      : { url: v.SVC_TERMS_URL, version: v.SVC_TERMS_VERSION },
  privacyUrl: v.SVC_PRIVACY_URL,
  imprintUrl: v.SVC_IMPRINT_URL,
  refundUrl: v.SVC_REFUND_URL,
  abuseContact: v.SVC_ABUSE_CONTACT,
})

/** A version without terms, or terms without a version, of which no acceptance could be recorded. */
export function* findLegalConflicts(v: Pick<Values, 'SVC_TERMS_URL' | 'SVC_TERMS_VERSION'>): Iterable<string> {
  if ((v.SVC_TERMS_URL === undefined) !== (v.SVC_TERMS_VERSION === undefined))
    yield 'SVC_TERMS_URL and SVC_TERMS_VERSION go together: set both or none'
}
