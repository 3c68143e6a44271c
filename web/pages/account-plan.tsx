/** The plan of an account, what it includes and costs, and the relay time used. */
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import type { Billing, Entitlement, Usage } from '../api-replies.ts'
import { UsageMeter } from '../charts/usage-meter.tsx'
import { Icon } from '../icons.tsx'
import { Day, formatHours } from '../time-text.tsx'
import { Addons, isComplimentary, PlanForm, Purchases, Renewal } from './account-billing.tsx'
import { PlanPrices } from './account-prices.tsx'
import { FreePlan, PaidPlan } from './plan-cards.tsx'
import { TrialTime } from './trial.tsx'

interface PlanProps {
  readonly entitlement: Entitlement
  readonly billing: Billing
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
}

export const Plan = ({ entitlement, billing, prices, relayTime }: PlanProps) => (
  <section
    class="card"
    aria-labelledby="plan"
    data-plan-tier={entitlement.plan_tier}
    data-plan-status={entitlement.plan_status}
    data-relays-in-use={`${entitlement.active_managed_conns}/${entitlement.max_concurrent_conns}`}
  >
    <div class="row apart">
      <h2 id="plan">{entitlement.plan_tier === 'paid' ? 'Paid plan' : 'Free plan'}</h2>
      <StatusBadge entitlement={entitlement} />
    </div>
    <p>
      <IncludedRelays entitlement={entitlement} />
    </p>
    <Addons billing={billing} />
    {isCharged(billing) ? <PlanPrices addons={billing.addons} prices={prices} /> : null}
    <Renewal billing={billing} />
    <Purchases billing={billing} prices={prices} relayTime={relayTime} />
  </section>
)

/** Whether the plan and its add-ons are charged each month. */
const isCharged = (billing: Billing): boolean =>
  billing.plan_status === 'past_due' || (billing.plan_status === 'active' && !isComplimentary(billing))

/** The plans side by side, for an account without the paid one. */
export const PlanComparison = ({ prices, relayTime }: Pick<PlanProps, 'prices' | 'relayTime'>) => (
  <div class="plans">
    <FreePlan prices={prices}>
      <p class="current">Your current plan</p>
    </FreePlan>
    <PaidPlan prices={prices} relayTime={relayTime}>
      <PlanForm text="Get the paid plan" className="" />
    </PaidPlan>
  </div>
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
  if (entitlement.trial) return <>No plan. The test time below is for one managed relay.</>
  if (reason === 'plan_required')
    return (
      <>
        No managed relays. The <a href="/help#plugin">plugin for OBS</a> works with a relay of your own on every plan.
      </>
    )
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
    {usage.trial ? <TrialTime trial={usage.trial} /> : <TimeOfCycle usage={usage} />}
    <p>
      <a class="link" href="/usage">
        <Icon name="chart-column" />
        Usage by day and relay
      </a>
    </p>
  </section>
)

const TimeOfCycle = ({ usage }: { readonly usage: Usage }) => (
  <>
    {usage.included_seconds > 0 ? <UsedOfIncluded usage={usage} /> : <p>{formatHours(usage.consumed_seconds)} used.</p>}
    <p class="muted">
      Since <Day at={usage.cycle_start} />. Resets on <Day at={usage.cycle_end} />.
    </p>
  </>
)

const UsedOfIncluded = ({ usage }: { readonly usage: Usage }) => (
  <>
    <p>
      <strong>{formatHours(usage.consumed_seconds)}</strong> of {formatHours(usage.included_seconds)} used,{' '}
      {usage.overage_seconds > 0
        ? `${formatHours(usage.overage_seconds)} over`
        : `${formatHours(usage.remaining_seconds)} left`}
      .
    </p>
    <UsageMeter
      includedSeconds={usage.included_seconds}
      consumedSeconds={usage.consumed_seconds}
      forecastSeconds={null}
    />
    {usage.overage_seconds > 0 ? (
      <p>
        {usage.enforcement === 'enforce'
          ? 'You can start new relays when the next cycle begins.'
          : 'Your relays keep working.'}
      </p>
    ) : null}
  </>
)
