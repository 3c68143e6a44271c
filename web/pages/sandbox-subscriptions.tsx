/** One subscription at the sandbox, and what can happen to it, in words. */
import { Day } from '../time-text.tsx'
import { formatAddons } from './account-billing.tsx'

export const outcomes = ['pay', 'fail', 'recover', 'cancel', 'resume', 'refund', 'end'] as const
export type Outcome = (typeof outcomes)[number]

export interface Subscription {
  readonly subscription_id: string
  readonly kind: 'plan' | 'addon'
  readonly quantity: number
  readonly status: 'open' | 'active' | 'past_due' | 'cancelled' | 'ended'
  readonly period_end: string | null
  readonly outcomes: readonly Outcome[]
  /** Goes along with each form: of two taps the second finds another version, and pays nothing twice. */
  readonly version: string
}

interface Shown {
  readonly one: Subscription
}

export const pathOf = ({ subscription_id: id }: Subscription, outcome: Outcome): string =>
  `/sandbox/subscriptions/${id}/${outcome}`

export const nameOf = ({ kind, quantity }: Subscription): string =>
  kind === 'plan' ? 'Paid plan' : formatAddons(quantity)

const standings: Readonly<Record<Subscription['status'], readonly [badge: string, label: string]>> = {
  open: ['warn', 'Not paid yet'],
  active: ['good', 'Active'],
  past_due: ['bad', 'Payment failed'],
  cancelled: ['warn', 'Cancelled'],
  ended: ['', 'Ended'],
}

export function SandboxSubscription({ one }: Shown) {
  const [badge, label] = standings[one.status]
  const titleId = `name-${one.subscription_id}`
  return (
    <article class="card" aria-labelledby={titleId}>
      <div class="row apart">
        <h2 id={titleId}>{nameOf(one)}</h2>
        <span class={`badge ${badge}`}>{label}</span>
      </div>
      <p class="muted">
        {one.period_end === null || one.status === 'ended' ? null : (
          <>
            Period until <Day at={one.period_end} /> ·{' '}
          </>
        )}
        <span class="code">{one.subscription_id}</span>
      </p>
      {one.outcomes.length > 0 ? (
        <div class="row">
          {one.outcomes.map((outcome) => (
            <Play key={outcome} one={one} outcome={outcome} />
          ))}
        </div>
      ) : null}
      {one.kind === 'addon' && one.status === 'active' ? <Change one={one} /> : null}
    </article>
  )
}

const Play = ({ one, outcome }: Shown & { readonly outcome: Outcome }) => (
  <form method="post" action={pathOf(one, outcome)} data-once>
    <input type="hidden" name="version" value={one.version} />
    <button class={harms.includes(outcome) ? 'danger' : 'second'} type="submit">
      {says(one, outcome)}
      <span class="unseen"> ({nameOf(one)})</span>
    </button>
  </form>
)

const harms: readonly Outcome[] = ['fail', 'refund', 'end']

function says({ status }: Subscription, outcome: Outcome): string {
  if (outcome === 'pay') return status === 'open' ? 'Pay' : 'Pay the renewal'
  if (outcome === 'fail') return status === 'past_due' ? 'Let it fail again' : 'Let a payment fail'
  return wishes[outcome]
}

const wishes: Readonly<Record<Exclude<Outcome, 'pay' | 'fail'>, string>> = {
  recover: 'Recover the payment',
  cancel: 'Cancel',
  resume: 'Resume',
  refund: 'Refund',
  end: 'End at once',
}

/** Paying for another number changes to it; paying for the same one is a renewal. None is a number too. */
const Change = ({ one }: Shown) => {
  const fieldId = `quantity-${one.subscription_id}`
  return (
    <form class="fields" method="post" action={pathOf(one, 'pay')}>
      <input type="hidden" name="version" value={one.version} />
      <div class="field">
        <label for={fieldId}>Another number of add-ons</label>
        <select id={fieldId} name="quantity">
          {[1, 2, 3, 0]
            .filter((count) => count !== one.quantity)
            .map((count) => (
              <option key={count} value={count}>
                {formatAddons(count)}
              </option>
            ))}
        </select>
      </div>
      <button class="second" type="submit">
        Change the number
      </button>
    </form>
  )
}
