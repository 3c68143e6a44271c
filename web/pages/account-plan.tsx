/** What the plan of an account includes, and how much of its relay time is used. */
import { Day, formatHours } from '../time-text.tsx'
import { Addons, type Billing, Buying, Prospect } from './account-billing.tsx'
import { BillingWarnings } from './account-subscriptions.tsx'

export interface Entitlement {
  readonly relay_access_status: 'enabled' | 'disabled'
  readonly reason_code: 'ok' | 'plan_required' | 'operator_disabled' | 'usage_exhausted'
  readonly plan_tier: 'free' | 'paid'
  readonly plan_status: 'none' | 'active' | 'past_due' | 'cancelled'
  readonly active_managed_conns: number
  readonly max_concurrent_conns: number
  readonly grace_ends_at: string | null
}

export const Plan = ({ entitlement, billing }: { readonly entitlement: Entitlement; readonly billing: Billing }) => (
  <section class="card" aria-labelledby="plan">
    <h2 id="plan">Plan</h2>
    <p class="row">
      <strong>{entitlement.plan_tier === 'paid' ? 'Paid plan' : 'Free plan'}</strong>
      <Standing entitlement={entitlement} />
    </p>
    <p>
      <Included entitlement={entitlement} />
    </p>
    <Addons billing={billing} />
    <Prospect billing={billing} />
    <BillingWarnings billing={billing} />
    <Buying billing={billing} />
  </section>
)

const standings: Readonly<Record<Entitlement['plan_status'], readonly [badge: string, label: string] | undefined>> = {
  none: undefined,
  active: ['good', 'Active'],
  past_due: ['bad', 'Payment failed'],
  cancelled: ['warn', 'Cancelled'],
}

const Standing = ({ entitlement }: { readonly entitlement: Entitlement }) => {
  const [badge, label] = standings[entitlement.plan_status] ?? []
  return label ? <span class={`badge ${badge}`}>{label}</span> : null
}

function Included({ entitlement }: { readonly entitlement: Entitlement }) {
  const { reason_code: reason, active_managed_conns: used, max_concurrent_conns: limit } = entitlement
  if (reason === 'operator_disabled') return <>Relays are switched off for this account. Ask support why.</>
  if (reason === 'plan_required') return <>No managed relay. A relay of your own works with the plugin on every plan.</>
  const relays = limit === 1 ? 'One managed relay' : `${limit} managed relays at once`
  return (
    <>
      {relays}, {used} of {limit} in use.{' '}
      {reason === 'usage_exhausted' ? 'The relay time of this cycle is used up, so no new one starts.' : null}
    </>
  )
}

export interface Usage {
  readonly cycle_start: string
  readonly cycle_end: string
  readonly included_seconds: number
  readonly consumed_seconds: number
  readonly remaining_seconds: number
  readonly overage_seconds: number
  readonly enforcement: 'report' | 'enforce'
}

export const TimeBank = ({ usage }: { readonly usage: Usage }) => (
  <section class="card" aria-labelledby="time-bank">
    <h2 id="time-bank">Relay time</h2>
    {usage.included_seconds > 0 ? <Used usage={usage} /> : <p>{formatHours(usage.consumed_seconds)} used.</p>}
    <p class="muted">
      Counted since <Day at={usage.cycle_start} />, anew from <Day at={usage.cycle_end} />.
    </p>
  </section>
)

const Used = ({ usage }: { readonly usage: Usage }) => (
  <>
    <p id="used">
      {formatHours(usage.consumed_seconds)} of {formatHours(usage.included_seconds)} used,{' '}
      {usage.overage_seconds > 0
        ? `${formatHours(usage.overage_seconds)} over`
        : `${formatHours(usage.remaining_seconds)} left`}
      .
    </p>
    <progress max={usage.included_seconds} value={usage.consumed_seconds} aria-labelledby="used" />
    {usage.overage_seconds > 0 ? (
      <p>
        {usage.enforcement === 'enforce' ? 'New relays start again with the next cycle.' : 'Relays go on all the same.'}
      </p>
    ) : null}
  </>
)
