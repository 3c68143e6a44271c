/** One subscription of the sandbox, with a button for each event that it can simulate. */
import { addonsMax } from '../../domain/billing/plans.ts'
import type { SandboxSubscription as ApiSubscription } from '../api-replies.ts'
import { Day } from '../time-text.tsx'
import { formatAddons } from './account-billing.tsx'

export type Outcome = ApiSubscription['outcomes'][number]
export const outcomes = ['pay', 'fail', 'recover', 'cancel', 'resume', 'refund', 'end'] as const satisfies Outcome[]

/** `version` is sent with each form: after a double click the second request has an outdated one, and is refused. */
export type Subscription = ApiSubscription

interface SubscriptionProps {
  readonly subscription: Subscription
}

export const outcomePath = ({ subscription_id: id }: Subscription, outcome: Outcome): string =>
  `/sandbox/subscriptions/${id}/${outcome}`

export const nameOf = ({ kind, quantity }: Subscription): string =>
  kind === 'plan' ? 'Paid plan' : formatAddons(quantity)

const statusBadges: Readonly<Record<Subscription['status'], readonly [className: string, label: string]>> = {
  open: ['warn', 'Unpaid'],
  active: ['good', 'Active'],
  past_due: ['bad', 'Payment failed'],
  cancelled: ['warn', 'Cancelled'],
  ended: ['', 'Ended'],
}

export function SandboxSubscription({ subscription }: SubscriptionProps) {
  const { subscription_id: id, kind, quantity, status, period_end } = subscription
  const [className, label] = statusBadges[status]
  const titleId = `name-${id}`
  return (
    <article
      class="card"
      aria-labelledby={titleId}
      data-subscription={id}
      data-status={status}
      data-quantity={quantity}
    >
      <div class="row apart">
        <h2 id={titleId}>{nameOf(subscription)}</h2>
        <span class={`badge ${className}`}>{label}</span>
      </div>
      <p class="muted">
        {period_end === null || status === 'ended' ? null : (
          <>
            Current period ends on <Day at={period_end} /> ·{' '}
          </>
        )}
        <span class="code">{id}</span>
      </p>
      {subscription.outcomes.length > 0 ? (
        <div class="row">
          {subscription.outcomes.map((outcome) => (
            <OutcomeForm key={outcome} subscription={subscription} outcome={outcome} />
          ))}
        </div>
      ) : null}
      {kind === 'addon' && status === 'active' ? <QuantityForm subscription={subscription} /> : null}
    </article>
  )
}

const OutcomeForm = ({ subscription, outcome }: SubscriptionProps & { readonly outcome: Outcome }) => (
  <form method="post" action={outcomePath(subscription, outcome)} data-once>
    <input type="hidden" name="version" value={subscription.version} />
    <button class={harmfulOutcomes.includes(outcome) ? 'danger' : 'second'} type="submit">
      {outcomeText(subscription, outcome)}
      <span class="unseen"> ({nameOf(subscription)})</span>
    </button>
  </form>
)

const harmfulOutcomes: readonly Outcome[] = ['fail', 'refund', 'end']

function outcomeText({ status }: Subscription, outcome: Outcome): string {
  if (outcome === 'pay') return status === 'open' ? 'Pay' : 'Pay renewal'
  if (outcome === 'fail') return status === 'past_due' ? 'Fail again' : 'Fail a payment'
  return outcomeTexts[outcome]
}

const outcomeTexts: Readonly<Record<Exclude<Outcome, 'pay' | 'fail'>, string>> = {
  recover: 'Recover payment',
  cancel: 'Cancel',
  resume: 'Resume',
  refund: 'Refund',
  end: 'End now',
}

/** A payment for another quantity changes it. Omits the current quantity, whose payment is a renewal. */
const QuantityForm = ({ subscription }: SubscriptionProps) => {
  const fieldId = `quantity-${subscription.subscription_id}`
  const quantities = [...Array.from({ length: addonsMax }, (_, index) => index + 1), 0]
  return (
    <form class="fields" method="post" action={outcomePath(subscription, 'pay')}>
      <input type="hidden" name="version" value={subscription.version} />
      <div class="field">
        <label for={fieldId}>Number of add-ons</label>
        <select id={fieldId} name="quantity">
          {quantities
            .filter((quantity) => quantity !== subscription.quantity)
            .map((quantity) => (
              <option key={quantity} value={quantity}>
                {formatAddons(quantity)}
              </option>
            ))}
        </select>
      </div>
      <button class="second" type="submit">
        Change quantity
      </button>
    </form>
  )
}
