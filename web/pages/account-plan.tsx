/** The plan of an account, what it includes, and the relay time used. */
import type { Billing, Entitlement, Usage } from '../api-replies.ts'
import { Day, formatHours } from '../time-text.tsx'
import { Addons, Purchases, Renewal } from './account-billing.tsx'
import { BillingWarnings } from './account-subscriptions.tsx'

interface PlanProps {
  readonly entitlement: Entitlement
  readonly billing: Billing
}

export const Plan = ({ entitlement, billing }: PlanProps) => (
  <section
    class="card"
    aria-labelledby="plan"
    data-plan-tier={entitlement.plan_tier}
    data-plan-status={entitlement.plan_status}
    data-relays-in-use={`${entitlement.active_managed_conns}/${entitlement.max_concurrent_conns}`}
  >
    <h2 id="plan">Plan</h2>
    <p class="row">
      <strong>{entitlement.plan_tier === 'paid' ? 'Paid plan' : 'Free plan'}</strong>
      <StatusBadge entitlement={entitlement} />
    </p>
    <p>
      <IncludedRelays entitlement={entitlement} />
    </p>
    <Addons billing={billing} />
    <Renewal billing={billing} />
    <BillingWarnings billing={billing} />
    <Purchases billing={billing} />
  </section>
)

type Badge = readonly [className: string, label: string]

const statusBadges: Readonly<Record<Entitlement['plan_status'], Badge | undefined>> = {
  none: undefined,
  active: ['good', 'Active'],
  past_due: ['bad', 'Payment failed'],
  cancelled: ['warn', 'Cancelled'],
}

const StatusBadge = ({ entitlement }: { readonly entitlement: Entitlement }) => {
  const [className, label] = statusBadges[entitlement.plan_status] ?? []
  return label ? <span class={`badge ${className}`}>{label}</span> : null
}

function IncludedRelays({ entitlement }: { readonly entitlement: Entitlement }) {
  const { reason_code: reason, active_managed_conns: used, max_concurrent_conns: limit } = entitlement
  if (reason === 'operator_disabled') return <>Relays are disabled for this account. Contact support.</>
  if (reason === 'plan_required')
    return <>No managed relays. The plugin works with a relay of your own on every plan.</>
  return (
    <>
      {limit === 1 ? '1 managed relay' : `${limit} managed relays`}, {used} of {limit} in use.{' '}
      {reason === 'usage_exhausted' ? 'You’ve used all relay time of this cycle, so you can’t start new relays.' : null}
    </>
  )
}

export const RelayTime = ({ usage }: { readonly usage: Usage }) => (
  <section
    class="card"
    aria-labelledby="relay-time"
    data-included-seconds={usage.included_seconds}
    data-consumed-seconds={usage.consumed_seconds}
  >
    <h2 id="relay-time">Relay time</h2>
    {usage.included_seconds > 0 ? <UsageBar usage={usage} /> : <p>{formatHours(usage.consumed_seconds)} used.</p>}
    <p class="muted">
      Since <Day at={usage.cycle_start} />. Resets on <Day at={usage.cycle_end} />.
    </p>
  </section>
)

const UsageBar = ({ usage }: { readonly usage: Usage }) => (
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
        {usage.enforcement === 'enforce'
          ? 'You can start new relays when the next cycle begins.'
          : 'Your relays keep working.'}
      </p>
    ) : null}
  </>
)
