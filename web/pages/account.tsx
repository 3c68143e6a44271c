/** The plan page of the account: the plan with its price, and relay time. */
import { type ApiResponse, ApiUnavailableError } from '../api.ts'
import type { AccountSummary, Billing } from '../api-replies.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { checkoutProblems, portalProblems, redirectToBillingPortal, redirectToCheckout } from './account-billing.tsx'
import { DeletionBanner } from './account-deletion.tsx'
import { Plan, PlanComparison, RelayTime } from './account-plan.tsx'
import { BillingWarnings, cancelProblems } from './account-subscriptions.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { PlanAlerts } from './plan-alerts.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/account',
  caller: 'user',
  handle: (visit) => accountPage(visit),
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
  ['cancelled', 'Subscription cancelled. If it is still shown as billed below, reload this page in a minute.'],
  ['bought', 'Thank you for your purchase. If your plan isn’t updated below, reload this page in a minute.'],
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
  const [summary, billing] = await Promise.all([
    visit.callApi<AccountSummary>('GET', '/api/v1/auth/session?view=dock'),
    visit.callApi<Billing>('GET', '/api/v1/billing/subscription'),
  ])
  for (const { status } of [summary, billing])
    if (status !== 200) throw new ApiUnavailableError(`the API replied ${status} to a request of the account page`)
  const { user, entitlement, usage } = summary.body
  return {
    name: 'account',
    title: 'Plan',
    section: 'account',
    styles: ['plans.css', 'usage.css'],
    status: refused?.status ?? 200,
    page: (
      <>
        <div class="page-head">
          <h1>Account</h1>
        </div>
        <AccountTabs current="plan" />
        <Message problem={refused?.problem} done={visit.query.get('done') ?? ''} />
        <DeletionBanner user={user} />
        <PlanAlerts entitlement={entitlement} usage={usage} payUrl={billing.body.manage_url} />
        <BillingWarnings billing={billing.body} />
        <div class="grid-2">
          <Plan entitlement={entitlement} billing={billing.body} prices={visit.config.prices} />
          <RelayTime usage={usage} />
        </div>
        {entitlement.plan_tier === 'free' ? <PlanComparison prices={visit.config.prices} /> : null}
      </>
    ),
  }
}

const Message = ({ problem, done }: { readonly problem: Problem | undefined; readonly done: string }) => {
  if (problem) return <ProblemMessage problem={problem} />
  const text = notices.get(done)
  return text ? <NoticeMessage notice={{ code: done, text }} /> : null
}
