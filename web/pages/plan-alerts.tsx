/** Alerts about the plan on every page: a failed payment, more relays than the plan includes, and scarce relay time. */
import type { ComponentChildren } from 'preact'
import type { Entitlement, Usage } from '../api-replies.ts'
import { Clock, DateTime, Day, formatHours, TimeLeft } from '../time-text.tsx'

interface PlanAlertsProps {
  readonly entitlement: Entitlement
  readonly usage: Usage
  /** Where to pay; null when only the billing provider's emails link to it. */
  readonly payUrl: string | null
}

/** Rendered without alerts too, since `relays.js` replaces this element when its version changes. */
export const PlanAlerts = (props: PlanAlertsProps) => (
  <div class="plan-alerts" data-part="plan-alerts" data-version={versionOf(props)}>
    <PaymentFailed {...props} />
    <SurplusRelays {...props} />
    <UsageAlert usage={props.usage} />
  </div>
)

const versionOf = ({ entitlement, usage }: PlanAlertsProps): string =>
  [
    entitlement.plan_status,
    entitlement.grace_ends_at,
    surplusOf(entitlement),
    entitlement.surplus_ends_at,
    usedPercentOf(usage),
  ].join(' ')

const PaymentFailed = ({ entitlement: { plan_status: status, grace_ends_at: ends }, payUrl }: PlanAlertsProps) =>
  status === 'past_due' && ends !== null ? (
    <section class="card alarm" aria-labelledby="payment-failed" data-alert="payment_failed">
      <h2 id="payment-failed" tabIndex={-1} data-announce>
        Payment failed
      </h2>
      <p>
        Pay by <DateTime at={ends} /> to keep your plan. Otherwise it switches to the free plan and its relays stop.
        Time left: <TimeLeft until={ends} expiredText="none" />
      </p>
      {payUrl === null ? (
        <p>Our billing provider has emailed you a link to pay.</p>
      ) : (
        <p>
          <a class="button" href={payUrl}>
            Pay now
          </a>
        </p>
      )}
    </section>
  ) : null

/** Relays that run beyond the plan's limit. Not for a plan without relays, whose relays stop at once. */
const surplusOf = ({ active_managed_conns: used, max_concurrent_conns: limit }: Entitlement): number =>
  limit > 0 ? Math.max(0, used - limit) : 0

const SurplusRelays = ({ entitlement }: PlanAlertsProps) => {
  const surplus = surplusOf(entitlement)
  if (surplus === 0) return null
  const { active_managed_conns: used, max_concurrent_conns: limit, surplus_ends_at: endsAt } = entitlement
  return (
    <p class="warning" data-alert="surplus_relays" data-surplus={surplus}>
      {used} relays are running, but your plan includes {limit}. The newest {surplus === 1 ? 'one' : surplus} will stop{' '}
      {endsAt ? (
        <>
          in <TimeLeft until={endsAt} expiredText="a moment" />, at <Clock at={endsAt} />
        </>
      ) : (
        'soon'
      )}
      . To choose which relays keep running, stop {surplus === 1 ? 'one' : 'some'} yourself.
    </p>
  )
}

/** Used share of the included relay time in whole percent; 0 below 80, where no alert is shown, and for a trial. */
function usedPercentOf({ consumed_seconds: used, included_seconds: included, trial }: Usage): number {
  const percent = included > 0 && !trial ? Math.floor((used * 100) / included) : 0
  return percent >= 80 ? percent : 0
}

function UsageAlert({ usage }: { readonly usage: Usage }): ComponentChildren {
  const percent = usedPercentOf(usage)
  if (percent === 0) return null
  const isEnforced = usage.enforcement === 'enforce'
  const resetDay = <Day at={usage.cycle_end} />
  const data = { 'data-alert': percent >= 100 ? 'usage_exhausted' : 'usage_high', 'data-used-percent': percent }
  if (percent >= 100)
    return (
      <p class={isEnforced ? 'problem' : 'warning'} {...data}>
        You’ve used all relay time of this cycle.{' '}
        {isEnforced
          ? 'Running relays keep running. You can start new ones from '
          : 'Your relays keep working. Relay time resets on '}
        {resetDay}.
      </p>
    )
  return (
    <p class="warning" {...data}>
      You’ve used {percent >= 95 ? 'almost all' : `${percent}%`} of this cycle’s relay time.{' '}
      {formatHours(usage.remaining_seconds)} left until {resetDay}.{' '}
      {isEnforced ? 'After that, you can’t start new relays.' : 'Your relays keep working after that.'}
    </p>
  )
}
