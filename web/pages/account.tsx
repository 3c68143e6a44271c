/** The account page: plan, relay time, profile, linked accounts, sign-ins and activity. */
import { type ApiResponse, ApiUnavailableError } from '../api.ts'
import type { Account, AccountSummary, Billing, Reply } from '../api-replies.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { Activity } from './account-activity.tsx'
import { checkoutProblems, portalProblems, redirectToBillingPortal, redirectToCheckout } from './account-billing.tsx'
import { Plan, RelayTime } from './account-plan.tsx'
import { AuthSessions, LinkedAccounts } from './account-sign-ins.tsx'
import { cancelProblems } from './account-subscriptions.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
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
    finish(visit, await visit.callApi('POST', '/api/v1/auth/email/resend', {}), 'verification_sent'),
}

export const unlink: PageRoute = {
  method: 'POST',
  path: '/account/linked/:provider/unlink',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) => {
    const provider = encodeURIComponent(visit.params.provider ?? '')
    return finish(visit, await visit.callApi('DELETE', `/api/v1/auth/oauth/${provider}`), 'unlinked')
  },
}

export const signOut: PageRoute = {
  method: 'POST',
  path: '/account/sessions/:id/sign-out',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) => {
    const id = encodeURIComponent(visit.params.id ?? '')
    return finish(visit, await visit.callApi('DELETE', `/api/v1/auth/sessions/${id}`), 'signed_out')
  },
}

export const checkout: PageRoute = {
  method: 'POST',
  path: '/account/checkout',
  caller: 'user',
  returnTo: '/account',
  handle: (visit) => redirectToCheckout(visit, (response) => accountPage(visit, refusal(response, checkoutProblems))),
}

/** `manage_url` links here, since the portal's address is created on demand. */
export const payments: PageRoute = {
  method: 'GET',
  path: '/account/payments',
  caller: 'user',
  handle: (visit) =>
    redirectToBillingPortal(visit, (response) => accountPage(visit, refusal(response, portalProblems))),
}

export const cancelSubscription: PageRoute = {
  method: 'POST',
  path: '/account/subscriptions/:subscription_id/cancel',
  caller: 'user',
  returnTo: '/account',
  handle: async (visit) => {
    const id = encodeURIComponent(visit.params.subscription_id ?? '')
    const response = await visit.callApi('POST', `/api/v1/billing/subscriptions/${id}/cancel`)
    return finish(visit, response, 'cancelled', cancelProblems)
  },
}

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([
  ['linked', 'Account linked.'],
  ['unlinked', 'Account unlinked.'],
  ['signed_out', 'Signed out.'],
  ['cancelled', 'Subscription cancelled. If it is still shown as billed below, reload this page in a minute.'],
  ['bought', 'Thank you for your purchase. If your plan isn’t updated below, reload this page in a minute.'],
  ['verification_sent', 'Verification link sent. It expires in 24 hours.'],
])

interface Refusal {
  readonly status: number
  readonly problem: Problem
}

const refusal = (response: ApiResponse, texts: Readonly<Record<string, string>> = {}): Refusal => ({
  status: response.status,
  problem: problemOf(response, { ...problems, ...texts }),
})

const problems: Readonly<Record<string, string>> = {
  last_sign_in_method: 'This is your only way to sign in. Link another account or set a password before you unlink it.',
  invalid_request: 'This is not on your account.',
  not_found: 'This is no longer on your account.',
}

/** Redirects to the page with a notice, or renders it with the refusal. */
const finish = (
  visit: Visit,
  response: ApiResponse,
  notice: string,
  texts?: Readonly<Record<string, string>>,
): Promise<PageResult> | PageResult =>
  response.status < 300 ? { redirectTo: `/account?done=${notice}` } : accountPage(visit, refusal(response, texts))

async function accountPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const [summary, billing, sessions, providers, audit] = await Promise.all([
    visit.callApi<AccountSummary>('GET', '/api/v1/auth/session?view=dock'),
    visit.callApi<Billing>('GET', '/api/v1/billing/subscription'),
    visit.callApi<Reply<'get', '/auth/sessions'>>('GET', '/api/v1/auth/sessions'),
    configuredProviders(visit),
    visit.callApi<Reply<'get', '/auth/audit'>>('GET', '/api/v1/auth/audit'),
  ])
  // A list that failed to load must not look empty, as if there were no other sign-in.
  for (const { status } of [summary, billing, sessions, audit])
    if (status !== 200) throw new ApiUnavailableError(`the API replied ${status} to a request of the account page`)
  const { user, entitlement, usage } = summary.body
  return {
    name: 'account',
    title: 'Account',
    section: 'account',
    styles: ['relays.css'],
    status: refused?.status ?? 200,
    page: (
      <>
        <h1>Account</h1>
        <Message problem={refused?.problem} done={visit.query.get('done') ?? ''} />
        <PlanAlerts entitlement={entitlement} usage={usage} payUrl={billing.body.manage_url} />
        <Plan entitlement={entitlement} billing={billing.body} />
        <RelayTime usage={usage} />
        <Profile user={user} />
        <LinkedAccounts accounts={user.linked_accounts} configured={providers} />
        <AuthSessions sessions={sessions.body.sessions} />
        <Activity entries={audit.body.entries} hasEmail={user.email !== null} />
      </>
    ),
  }
}

const Message = ({ problem, done }: { readonly problem: Problem | undefined; readonly done: string }) => {
  if (problem) return <ProblemMessage problem={problem} />
  const text = notices.get(done)
  return text ? <NoticeMessage notice={{ code: done, text }} /> : null
}

const Profile = ({ user }: { readonly user: Account }) => (
  <section class="card" aria-labelledby="profile">
    <h2 id="profile">Profile</h2>
    {user.email === null ? (
      <p>No email address. You sign in with a linked account below.</p>
    ) : (
      <>
        <p class="row" data-email-verified={user.email_verified ? 'yes' : 'no'}>
          <span class="code">{user.email}</span>
          <span class={user.email_verified ? 'badge good' : 'badge warn'}>
            {user.email_verified ? 'Verified' : 'Unverified'}
          </span>
        </p>
        {user.email_verified ? null : (
          <form class="row" method="post" action="/account/verification">
            <p>Open the link we emailed you to verify your email address.</p>
            <button class="second" type="submit">
              Resend link
            </button>
          </form>
        )}
        <p>
          <a class="link" href="/forgot-password">
            Change password
          </a>
        </p>
      </>
    )}
  </section>
)
