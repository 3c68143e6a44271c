/** The account: whose it is, what its plan includes, how it is signed in to, and what happened to it. */
import { type ApiResponse, ApiUnavailableError, readApiError } from '../api.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { Activity, type Entry } from './account-activity.tsx'
import { type Billing, checkoutProblem, redirectToCheckout } from './account-billing.tsx'
import { type Entitlement, Plan, TimeBank, type Usage } from './account-plan.tsx'
import { type AuthSession, type LinkedAccount, LinkedAccounts, SignedIn } from './account-sign-ins.tsx'
import { cancelProblem, redirectToBillingPortal } from './account-subscriptions.tsx'
import { PlanAlerts } from './plan-alerts.tsx'
import { configuredProviders } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/account',
  caller: 'user',
  handle: (visit) => accountPage(visit),
}

export const sendVerification: PageRoute = {
  method: 'POST',
  path: '/account/verification',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) =>
    done(visit, await visit.callApi('POST', '/api/v1/auth/email/resend', {}), 'verification_sent'),
}

export const unlink: PageRoute = {
  method: 'POST',
  path: '/account/linked/:provider/unlink',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) => {
    const provider = encodeURIComponent(visit.params.provider ?? '')
    return done(visit, await visit.callApi('DELETE', `/api/v1/auth/oauth/${provider}`), 'unlinked')
  },
}

export const signOut: PageRoute = {
  method: 'POST',
  path: '/account/sessions/:id/sign-out',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) => {
    const id = encodeURIComponent(visit.params.id ?? '')
    return done(visit, await visit.callApi('DELETE', `/api/v1/auth/sessions/${id}`), 'signed_out')
  },
}

export const checkout: PageRoute = {
  method: 'POST',
  path: '/account/checkout',
  caller: 'user',
  returnTo: '/account',
  handle: (visit) => redirectToCheckout(visit, (refused) => accountPage(visit, refused, checkoutProblem(refused))),
}

/** Where `manage_url` leads: a personal page of the provider's, whose address is made on demand. */
export const payments: PageRoute = {
  method: 'GET',
  path: '/account/payments',
  caller: 'user',
  handle: (visit) => redirectToBillingPortal(visit, (refused, problem) => accountPage(visit, refused, problem)),
}

export const cancelSubscription: PageRoute = {
  method: 'POST',
  path: '/account/subscriptions/:subscription_id/cancel',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) => {
    const id = encodeURIComponent(visit.params.subscription_id ?? '')
    const answer = await visit.callApi('POST', `/api/v1/billing/subscriptions/${id}/cancel`)
    return answer.status === 200
      ? { redirectTo: '/account?done=cancelled' }
      : accountPage(visit, answer, cancelProblem(answer))
  },
}

/** What the page says of what was just done. The address names it, which anybody can write: a map knows no other names. */
const notices: ReadonlyMap<string, string> = new Map([
  ['linked', 'It is linked to your account.'],
  ['unlinked', 'Not linked any more.'],
  ['signed_out', 'Signed out there.'],
  ['cancelled', 'Cancelled at the billing provider. If it is still shown as billed below, look again in a minute.'],
  ['bought', 'Thank you. If the plan below is not yet what you bought, look again in a minute.'],
  ['verification_sent', 'A new link is on its way to your address. It works for 24 hours.'],
])

/** Back to the page with a notice, or the page with the refusal. */
const done = (visit: Visit, answer: ApiResponse, notice: string): Promise<PageResult> | PageResult =>
  answer.status < 300 ? { redirectTo: `/account?done=${notice}` } : accountPage(visit, answer)

const problems: Readonly<Record<string, string>> = {
  last_sign_in_method:
    'This is the only way to sign in to your account, so it stays. Link another one first, or set a password.',
  invalid_request: 'There is no such thing on your account.',
  not_found: 'There is no such thing on your account any more.',
}

const problemIn = (refused: ApiResponse): string => problems[readApiError(refused).code] ?? problemOf(refused).text

interface Summary {
  readonly user: {
    readonly email: string | null
    readonly email_verified: boolean
    readonly linked_accounts: readonly LinkedAccount[]
    readonly created_at: string
  }
  readonly entitlement: Entitlement
  readonly usage: Usage
}

/** @param problem of the refusal, where it is known better here. */
async function accountPage(visit: Visit, refused?: ApiResponse, problem?: string): Promise<PageResult> {
  const [summary, billing, sessions, providers, audit] = await Promise.all([
    visit.callApi<Summary>('GET', '/api/v1/auth/session?view=dock'),
    visit.callApi<Billing>('GET', '/api/v1/billing/subscription'),
    visit.callApi<{ sessions?: readonly AuthSession[] }>('GET', '/api/v1/auth/sessions'),
    configuredProviders(visit),
    visit.callApi<{ entries?: readonly Entry[] }>('GET', '/api/v1/auth/audit'),
  ])
  // A list that is not known is not an empty one: it would say that nobody else is signed in.
  for (const { status } of [summary, billing, sessions, audit])
    if (status !== 200) throw new ApiUnavailableError(`the api answered ${status} for an account`)
  const { user, entitlement, usage } = summary.body
  return {
    title: 'Account',
    status: refused?.status ?? 200,
    page: (
      <>
        <h1>Account</h1>
        <Said
          problem={problem ?? (refused && problemIn(refused))}
          notice={notices.get(visit.query.get('done') ?? '')}
        />
        <PlanAlerts entitlement={entitlement} usage={usage} payAt={billing.body.manage_url} />
        <Plan entitlement={entitlement} billing={billing.body} />
        <TimeBank usage={usage} />
        <Profile user={user} />
        <LinkedAccounts accounts={user.linked_accounts} configured={providers} />
        <SignedIn sessions={sessions.body.sessions ?? []} />
        <Activity entries={audit.body.entries ?? []} hasAddress={user.email !== null} />
      </>
    ),
  }
}

const Said = ({ problem, notice }: { readonly problem?: string | undefined; readonly notice?: string | undefined }) => {
  if (problem)
    return (
      <p class="problem" role="alert">
        {problem}
      </p>
    )
  return notice ? (
    <p class="notice" role="status">
      {notice}
    </p>
  ) : null
}

const Profile = ({ user }: { readonly user: Summary['user'] }) => (
  <section class="card" aria-labelledby="profile">
    <h2 id="profile">Profile</h2>
    {user.email === null ? (
      <p>No email address: you sign in with an account linked below.</p>
    ) : (
      <>
        <p class="row">
          <span class="code">{user.email}</span>
          <span class={user.email_verified ? 'badge good' : 'badge warn'}>
            {user.email_verified ? 'Confirmed' : 'Not confirmed'}
          </span>
        </p>
        {user.email_verified ? null : (
          <form class="row" method="post" action="/account/verification">
            <p>Confirm your address: open the link that we sent to it.</p>
            <button class="second" type="submit">
              Send the link again
            </button>
          </form>
        )}
        <p>
          <a class="link" href="/forgot-password">
            Change the password
          </a>
        </p>
      </>
    )}
  </section>
)
