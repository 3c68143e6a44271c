/** Warnings about subscriptions that are billed without benefit, each with a button that cancels it. */
import type { ComponentChildren } from 'preact'
import type { Billing, Subscription } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import { Day } from '../time-text.tsx'
import { formatAddons } from './account-billing.tsx'

const isBilled = ({ status }: Subscription): boolean => status === 'active' || status === 'past_due'

/** The most urgent warning first. */
export function BillingWarnings({ billing }: { readonly billing: Billing }) {
  const { subscriptions, plan_tier: tier, plan_status: status, ends_at: ends } = billing
  const unusedAddons = subscriptions.filter((subscription) => subscription.billed_without_plan)
  const plans = subscriptions.filter((subscription) => subscription.billed_twice)
  const unpaid = subscriptions.filter(
    (subscription) => subscription.kind === 'plan' && subscription.status === 'past_due' && !subscription.billed_twice,
  )
  const addons = subscriptions.filter(
    (subscription) => subscription.kind === 'addon' && subscription.quantity > 0 && isBilled(subscription),
  )
  return (
    <>
      {plans.length > 0 ? (
        <Warning name="billed-twice" title={`You’re billed for ${plans.length} plans`} subscriptions={plans}>
          A second plan adds no relays. Cancel the one that you don’t want to keep.
        </Warning>
      ) : null}
      {tier === 'free' && unpaid.length > 0 ? (
        <Warning name="earlier-plan" title="Your previous plan is unpaid" subscriptions={unpaid}>
          The billing provider keeps trying to collect the payment, and your plan resumes if it succeeds. Cancel it
          before you subscribe again to avoid paying for both.
        </Warning>
      ) : null}
      {unusedAddons.length > 0 ? (
        <Warning
          name="unused-addons"
          title={`You’re still billed for ${formatAddons(totalQuantity(unusedAddons))}`}
          subscriptions={unusedAddons}
        >
          Add-ons have no effect without the paid plan. Get the paid plan to use them, or cancel them.
        </Warning>
      ) : null}
      {tier === 'paid' && status === 'cancelled' && ends !== null && addons.length > 0 ? (
        <Warning name="addons-renew" title="Your add-ons will renew" subscriptions={addons}>
          Your plan ends on <Day at={ends} />, but your add-ons are billed after that. Cancel them if you don’t need
          them.
        </Warning>
      ) : null}
    </>
  )
}

const totalQuantity = (addons: readonly Subscription[]): number =>
  addons.reduce((sum, { quantity }) => sum + quantity, 0)

interface WarningProps {
  readonly name: string
  readonly title: string
  readonly subscriptions: readonly Subscription[]
  readonly children: ComponentChildren
}

const Warning = ({ name, title, subscriptions, children }: WarningProps) => (
  <section class="warning fields" aria-labelledby={name} data-warning={name}>
    <h2 id={name}>
      <Icon name="triangle-alert" /> {title}
    </h2>
    <p>{children}</p>
    {subscriptions.map((subscription) => (
      <CancelForm key={subscription.subscription_id} subscription={subscription} />
    ))}
  </section>
)

interface SubscriptionProps {
  readonly subscription: Subscription
}

const nameOf = ({ kind, quantity }: Subscription): string => (kind === 'plan' ? 'Paid plan' : formatAddons(quantity))

const CancelForm = ({ subscription }: SubscriptionProps) => {
  const { subscription_id: id, kind, quantity, can_cancel: canCancel } = subscription
  const descriptionId = `subscription-${id}`
  const description = (
    <p id={descriptionId}>
      {nameOf(subscription)}: <PaymentStatus subscription={subscription} />
    </p>
  )
  if (!canCancel)
    return (
      <>
        {description}
        <p>You can only cancel it with the billing provider where you bought it.</p>
      </>
    )
  return (
    <form class="row apart" method="post" action={`/account/subscriptions/${encodeURIComponent(id)}/cancel`} data-once>
      {description}
      <button class="danger" type="submit" aria-describedby={descriptionId}>
        {kind === 'plan' ? 'Cancel plan' : `Cancel ${formatAddons(quantity)}`}
      </button>
    </form>
  )
}

function PaymentStatus({ subscription: { status, renews_at: renews } }: SubscriptionProps) {
  if (status === 'past_due') return <>payment failed</>
  if (renews === null) return <>active</>
  return (
    <>
      next payment on <Day at={renews} />
    </>
  )
}

export const cancelProblems: Readonly<Record<string, string>> = {
  billing_provider_error:
    'The billing provider didn’t confirm the cancellation. Try again in a moment; it is safe to repeat.',
  not_found: 'This subscription is not on your account.',
}
