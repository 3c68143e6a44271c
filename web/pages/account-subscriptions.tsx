/** Warnings of subscriptions that are billed and bring nothing, each with a button that cancels it. */
import type { ComponentChildren } from 'preact'
import { type ApiResponse, readApiError } from '../api.ts'
import type { PageResult, Visit } from '../page.ts'
import { Day } from '../time-text.tsx'
import { type Billing, formatAddons, type Subscription } from './account-billing.tsx'

const isBilled = ({ status }: Subscription): boolean => status === 'active' || status === 'past_due'

/** The most urgent first; nothing where everything that is billed is of use. */
export function BillingWarnings({ billing }: { readonly billing: Billing }) {
  const { subscriptions, plan_tier: tier, plan_status: status, ends_at: ends } = billing
  const idle = subscriptions.filter((one) => one.billed_without_plan)
  const twice = subscriptions.filter((one) => one.billed_twice)
  const unpaid = subscriptions.filter((one) => one.kind === 'plan' && one.status === 'past_due' && !one.billed_twice)
  const addons = subscriptions.filter((one) => one.kind === 'addon' && one.quantity > 0 && isBilled(one))
  return (
    <>
      {twice.length > 0 ? (
        <Warning id="billed-twice" title={`You are billed for ${twice.length} plans`} about={twice}>
          One plan is enough: another one brings no further relays. Cancel the one that you do not want to keep.
        </Warning>
      ) : null}
      {tier === 'free' && unpaid.length > 0 ? (
        <Warning id="earlier-plan" title="Your earlier plan is not paid" about={unpaid}>
          The billing provider still tries to collect its payment, and the plan comes back when it gets through. Cancel
          it before you buy a new plan, so that you do not pay for both.
        </Warning>
      ) : null}
      {idle.length > 0 ? (
        <Warning id="idle-addons" title={`You are still billed for ${formatAddons(countOf(idle))}`} about={idle}>
          Add-ons do nothing without a plan. Get the paid plan to use them, or cancel them.
        </Warning>
      ) : null}
      {tier === 'paid' && status === 'cancelled' && ends !== null && addons.length > 0 ? (
        <Warning id="addons-go-on" title="Your add-ons renew" about={addons}>
          The plan ends on <Day at={ends} />, and the add-ons go on being billed after that. Cancel them too if you do
          not need them.
        </Warning>
      ) : null}
    </>
  )
}

const countOf = (addons: readonly Subscription[]): number => addons.reduce((sum, { quantity }) => sum + quantity, 0)

interface Shown {
  readonly id: string
  readonly title: string
  readonly about: readonly Subscription[]
  readonly children: ComponentChildren
}

const Warning = ({ id, title, about, children }: Shown) => (
  <section class="warning fields" aria-labelledby={id}>
    <h3 id={id}>{title}</h3>
    <p>{children}</p>
    {about.map((one) => (
      <Cancelling key={one.subscription_id} one={one} />
    ))}
  </section>
)

const nameOf = ({ kind, quantity }: Subscription): string => (kind === 'plan' ? 'Paid plan' : formatAddons(quantity))

const Cancelling = ({ one }: { readonly one: Subscription }) => {
  const rowId = `subscription-${one.subscription_id}`
  const about = (
    <p id={rowId}>
      {nameOf(one)}: <Prospect one={one} />
    </p>
  )
  if (!one.can_cancel)
    return (
      <>
        {about}
        <p>It can only be cancelled at the billing provider where it was bought.</p>
      </>
    )
  return (
    <form
      class="row apart"
      method="post"
      action={`/account/subscriptions/${encodeURIComponent(one.subscription_id)}/cancel`}
      data-once
    >
      {about}
      <button class="danger" type="submit" aria-describedby={rowId}>
        {one.kind === 'plan' ? 'Cancel this plan' : `Cancel ${formatAddons(one.quantity)}`}
      </button>
    </form>
  )
}

function Prospect({ one: { status, renews_at: renews } }: { readonly one: Subscription }) {
  if (status === 'past_due') return <>payment failed</>
  if (renews === null) return <>active</>
  return (
    <>
      next payment on <Day at={renews} />
    </>
  )
}

const cancelProblems: Readonly<Record<string, string>> = {
  billing_provider_error:
    'The billing provider did not confirm that it was cancelled. Try again in a moment: nothing is cancelled twice.',
  not_found: 'There is no such subscription on your account.',
}

/** Why a subscription is not known to be cancelled; nothing where the refusal is about something else. */
export const cancelProblem = (answer: ApiResponse): string | undefined => cancelProblems[readApiError(answer).code]

const portalProblems: Readonly<Record<string, string>> = {
  billing_provider_error:
    'The page where you manage payments could not be opened. Try again in a moment, or use the link in a mail of our billing provider.',
  not_found: 'You have not bought anything yet, so there are no payments to manage.',
}

/**
 * On the way to where one manages payments, by an address that is for this visitor and soon expires.
 * @param refused shows why not.
 */
export async function redirectToBillingPortal(
  visit: Visit,
  refused: (answer: ApiResponse, problem: string | undefined) => Promise<PageResult>,
): Promise<PageResult> {
  const answer = await visit.callApi<{ portal_url: string }>('POST', '/api/v1/billing/portal', {})
  if (answer.status !== 200) return refused(answer, portalProblems[readApiError(answer).code])
  const url = new URL(answer.body.portal_url)
  if (url.origin === visit.origin) return { redirectTo: url.pathname + url.search }
  return { continueTo: url.href, message: 'Going to where you manage payments …' }
}
