/**
 * Linking a provider to the account that already has its email address, after proof that the account is the visitor's.
 */
import { readApiError } from '../api-client.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import type { PageHandler, PageResult } from '../page.ts'
import { PasswordField } from './fields.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { startAuthorization } from './oauth.tsx'
import { clearMergeCookie, type MergeRequest, readMergeRequest } from './oauth-cookies.ts'
import { problemPage } from './problem.tsx'
import { displayNames, type ProviderName, parseProvider } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = (visit) => {
  const merge = readMergeRequest(visit)
  if (!merge) return expiredPage
  const provedWith = parseProvider(visit.query.get('proved') ?? undefined)
  return provedWith && merge.methods.includes(provedWith)
    ? confirmationPage(merge, provedWith)
    : ownershipPage({ merge })
}

/** Field: `password`, or none after proof through a provider that was already linked. */
export const submit: PageHandler = async (visit) => {
  const merge = readMergeRequest(visit)
  if (!merge) return expiredPage
  const password = visit.form.get('password')
  const body = { merge_token: merge.token, ...(password === null ? {} : { password }) }
  const params = { path: { merge_request_id: merge.id } }
  const result = await visit.anonymousApi.POST('/api/v1/auth/merge/{merge_request_id}/confirm', { params, body })
  if (isTokenSet(result.data))
    return { redirectTo: merge.next, cookies: [...signInCookies(result.data), clearMergeCookie] }
  if (expiredCodes.has(readApiError(result).code)) return expiredPage
  return ownershipPage({ merge, problem: problemOf(result), status: result.response.status })
}

const expiredCodes = new Set(['merge_expired', 'token_invalid', 'not_found'])

export const startProof: PageHandler = (visit) => {
  const provider = parseProvider(visit.params.provider)
  if (!provider) return problemPage('not_found')
  const merge = readMergeRequest(visit)
  if (!merge) return expiredPage
  return startAuthorization(visit, { provider, intent: 'merge', next: '/merge' }, { merge_request_id: merge.id })
}

interface OwnershipForm {
  readonly merge: MergeRequest
  readonly problem?: Problem
  readonly status?: number
}

function ownershipPage({ merge, problem, status = 200 }: OwnershipForm): PageResult {
  const name = displayNames[merge.provider]
  const hasPassword = merge.methods.includes('password')
  const providers = merge.methods.filter((method) => method !== 'password')
  return {
    name: 'merge-ownership',
    title: `Link ${name} to your account`,
    status,
    page: (
      <section class="card narrow">
        <h1>Is this your account?</h1>
        <p>
          An account with the email address of your {name} account already exists. Confirm that it’s yours to link{' '}
          {name} and sign in.
        </p>
        <ProblemMessage problem={problem} />
        {hasPassword ? <PasswordForm name={name} problem={problem} /> : null}
        {hasPassword && providers.length > 0 ? <p class="or">or</p> : null}
        {providers.map((provider) => (
          <form key={provider} method="post" action={`/merge/oauth/${provider}`}>
            <button class="second wide" type="submit">
              Confirm with {displayNames[provider]}
            </button>
          </form>
        ))}
        <p class="muted">Forgot your password? Cancel, then reset it from the sign-in page.</p>
        <Cancel next={merge.next} />
      </section>
    ),
  }
}

const PasswordForm = ({ name, problem }: { readonly name: string; readonly problem: Problem | undefined }) => (
  <form class="fields" method="post" action="/merge">
    <PasswordField problem={problem} />
    <button class="wide" type="submit">
      Confirm and link {name}
    </button>
  </form>
)

/** The provider's callback is a GET request, which must not link anything by itself. */
const confirmationPage = (merge: MergeRequest, provedWith: ProviderName): PageResult => ({
  name: 'merge-confirmation',
  title: `Link ${displayNames[merge.provider]} to your account`,
  page: (
    <section class="card narrow">
      <h1>Link {displayNames[merge.provider]} to this account?</h1>
      <p>
        You confirmed with {displayNames[provedWith]} that this account is yours. Once linked, you can also sign in with{' '}
        {displayNames[merge.provider]}.
      </p>
      <form class="fields" method="post" action="/merge">
        <button class="wide" type="submit">
          Link {displayNames[merge.provider]}
        </button>
      </form>
      <Cancel next={merge.next} />
    </section>
  ),
})

const Cancel = ({ next }: { readonly next: string }) => (
  <p>
    <a class="link" href={`/login?next=${encodeURIComponent(next)}`}>
      Cancel
    </a>
  </p>
)

const expiredPage: PageResult = {
  name: 'merge-expired',
  title: 'This request has expired',
  status: 410,
  cookies: [clearMergeCookie],
  page: (
    <section class="card narrow">
      <h1>This request has expired</h1>
      <p role="alert" data-problem="merge_expired">
        Linking was started more than 10 minutes ago or in another browser. Nothing was linked. Sign in to try again.
      </p>
      <a class="button second wide" href="/login">
        Back to sign-in
      </a>
    </section>
  ),
}
