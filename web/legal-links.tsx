/** Links to the legal pages of the operator, and the sentences that name the terms. */
import { Fragment } from 'preact'
import type { LegalPages } from '../platform/config/legal.ts'

interface LegalProps {
  readonly legal: LegalPages
}

/** In the footer. Nothing for pages that are not configured. */
export function LegalNavigation({ legal }: LegalProps) {
  const links = listLegalLinks(legal)
  return links.length === 0 ? null : (
    <nav aria-label="Legal">
      {links.map(([label, href]) => (
        <a key={label} class="link" href={href}>
          {label}
        </a>
      ))}
    </nav>
  )
}

type PossibleLink = readonly [label: string, href: string | undefined]

const listLegalLinks = ({ terms, privacyUrl, imprintUrl, refundUrl, abuseContact }: LegalPages) =>
  omitMissing([
    ['Terms', terms?.url],
    ['Privacy', privacyUrl],
    ['Imprint', imprintUrl],
    ['Refunds', refundUrl],
    ['Report abuse', abuseContact?.includes('://') === false ? `mailto:${abuseContact}` : abuseContact],
  ])

const omitMissing = (links: readonly PossibleLink[]) =>
  links.flatMap(([label, href]) => (href === undefined ? [] : [[label, href] as const]))

interface TermsSentenceProps extends LegalProps {
  /** What accepts the terms, such as `By creating an account`. */
  readonly act: string
}

/** At sign-up. Nothing without terms and privacy policy. */
export const TermsSentence = ({ legal, act }: TermsSentenceProps) => (
  <LegalText terms={legal.terms} act={act} links={[['Privacy policy', legal.privacyUrl]]} />
)

/** Where plans are bought. Nothing without terms, privacy policy and page about refunds. */
export const PurchaseTerms = ({ legal: { terms, privacyUrl, refundUrl } }: LegalProps) => (
  <LegalText
    terms={terms}
    act="By buying"
    links={[
      ['Privacy policy', privacyUrl],
      ['Refunds and withdrawal', refundUrl],
    ]}
  />
)

interface LegalTextProps {
  readonly terms: LegalPages['terms']
  readonly act: string
  readonly links: readonly PossibleLink[]
}

function LegalText({ terms, act, links }: LegalTextProps) {
  if (terms === undefined && omitMissing(links).length === 0) return null
  return (
    <p class="muted" data-terms-version={terms?.version}>
      {terms === undefined ? null : (
        <>
          {act} you accept the <a href={terms.url}>terms</a> (version {terms.version}).
        </>
      )}
      {omitMissing(links).map(([label, href]) => (
        <Fragment key={label}>
          {' '}
          <a href={href}>{label}</a>.
        </Fragment>
      ))}
    </p>
  )
}

/** The version of the terms that a form states, for the API. */
export const TermsField = ({ legal: { terms } }: LegalProps) =>
  terms === undefined ? null : <input type="hidden" name="terms_version" value={terms.version} />

/** What the form stated; nothing for one without terms. */
export function acceptedTerms(form: URLSearchParams): { readonly terms_version?: string } {
  const version = form.get('terms_version') ?? ''
  return version === '' ? {} : { terms_version: version }
}
