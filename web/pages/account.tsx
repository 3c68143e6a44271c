/** The plan page of the account: the plan with its price, and relay time. */

import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import type { RelayTimeTerms } from '../../platform/config/site.ts'
import { PurchaseTerms } from '../legal-links.tsx'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { describeLimit, formatRelays, formatRelayTime } from '../plan-terms.ts'
import { checkoutProblems, portalProblems, redirectToBillingPortal, redirectToCheckout } from './account-billing.tsx'
import { DeletionBanner } from './account-deletion.tsx'
import { Plan, PlanComparison, RelayTime } from './account-plan.tsx'
import { BillingWarnings, cancelProblems } from './account-subscriptions.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { readWithdrawals, WithdrawalCard } from './account-withdrawals.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { PlanAlerts } from './plan-alerts.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = (visit) => accountPage(visit)

export const checkout: PageHandler = (visit) =>
  redirectToCheckout(visit, (result) => accountPage(visit, refusal(result, checkoutProblems)))

/** `manage_url` links here, since the portal's address is created on demand. */
export const payments: PageHandler = (visit) =>
  redirectToBillingPortal(visit, (result) => accountPage(visit, refusal(result, portalProblems)))

export const cancelSubscription: PageHandler = async (visit) => {
  const path = { subscription_id: visit.params.subscription_id ?? '' }
  const result = await visit.api.POST('/api/v1/billing/subscriptions/{subscription_id}/cancel', { params: { path } })
  return finish(visit, result, 'cancelled', cancelProblems)
}

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([
  ['cancelled', 'Subscription cancelled. If it is still shown as billed below, reload this page in a minute.'],
  ['withdrawn', 'We have received your withdrawal. The receipt is below, and in your email.'],
  ['bought', 'Thank you for your purchase. If your plan isn’t updated below, reload this page in a minute.'],
])

interface Refusal {
  readonly status: number
  readonly problem: Problem
}

const refusal = (result: ApiResult, texts: Readonly<Record<string, string>> = {}): Refusal => ({
  status: result.response.status,
  problem: problemOf(result, { ...problems, ...texts }),
})

const problems: Readonly<Record<string, string>> = {
  invalid_request: 'This is not on your account.',
  not_found: 'This is no longer on your account.',
}

/** Redirects to the page with a notice, or renders it with the refusal. */
const finish = (
  visit: Visit,
  result: ApiResult,
  notice: string,
  texts?: Readonly<Record<string, string>>,
): Promise<PageResult> | PageResult =>
  result.response.status < 300 ? { redirectTo: `/account?done=${notice}` } : accountPage(visit, refusal(result, texts))

async function accountPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const [summary, subscription, withdrawals] = await Promise.all([
    visit.api.GET('/api/v1/auth/session', { params: { query: { view: 'dock' } } }),
    visit.api.GET('/api/v1/billing/subscription'),
    readWithdrawals(visit),
  ])
  const { legal, prices, relayTime } = visit.config
  const { user, entitlement, usage } = expectSuccess(summary, 'A request of the account page')
  const billing = expectSuccess(subscription, 'A request of the account page')
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
        <Message
          problem={refused?.problem}
          done={visit.query.get('done') ?? ''}
          relays={entitlement.max_concurrent_conns}
          relayTime={relayTime}
        />
        <DeletionBanner user={user} />
        <PlanAlerts entitlement={entitlement} usage={usage} payUrl={billing.manage_url} />
        <BillingWarnings billing={billing} />
        <div class="grid-2">
          <Plan entitlement={entitlement} billing={billing} prices={prices} relayTime={relayTime} />
          <RelayTime usage={usage} />
        </div>
        <WithdrawalCard of={withdrawals} />
        {entitlement.plan_tier === 'free' ? <PlanComparison prices={prices} relayTime={relayTime} /> : null}
        <PurchaseTerms legal={legal} />
      </>
    ),
  }
}

interface MessageProps {
  readonly problem: Problem | undefined
  readonly done: string
  /** How many the plan includes, with its add-ons. */
  readonly relays: number
  readonly relayTime: RelayTimeTerms
}

const Message = ({ problem, done, relays, relayTime }: MessageProps) => {
  if (problem) return <ProblemMessage problem={problem} />
  const text = notices.get(done)
  if (!text) return null
  return (
    <>
      <NoticeMessage notice={{ code: done, text }} />
      {done === 'bought' && relays > 0 ? (
        <>
          <p data-bought-relays={relays}>
            Your plan includes {formatRelays(relays)} and {formatRelayTime(relays, relayTime)}.{' '}
            {describeLimit(relayTime)}
          </p>
          <p>
            <a class="button" href="/relays">
              Start your relay
            </a>
          </p>
        </>
      ) : null}
    </>
  )
}
