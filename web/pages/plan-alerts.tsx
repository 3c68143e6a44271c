/** What an owner has to know of the plan on every page: a payment that failed, relays beyond it, relay time that runs out. */
import type { ComponentChildren } from 'preact'
import { DateTime, Day, formatHours, TimeLeft } from '../time-text.tsx'
import type { Entitlement, Usage } from './account-plan.tsx'

interface Shown {
  readonly entitlement: Entitlement
  readonly usage: Usage
  /** Where one pays; null when only the billing provider's mails lead there. */
  readonly payAt: string | null
}

/** Always there, so that the page's script finds the place; without news it takes no room. */
export const PlanAlerts = (shown: Shown) => (
  <div class="plan-alerts" data-part="plan-alerts" data-version={versionOf(shown)}>
    <PaymentDue {...shown} />
    <Surplus {...shown} />
    <Running usage={shown.usage} />
  </div>
)

/** Another one means that something else is to be said. */
const versionOf = ({ entitlement, usage }: Shown): string =>
  [entitlement.plan_status, entitlement.grace_ends_at, surplusOf(entitlement), percentOf(usage)].join(' ')

const PaymentDue = ({ entitlement: { plan_status: status, grace_ends_at: ends }, payAt }: Shown) =>
  status === 'past_due' && ends !== null ? (
    <section class="card alarm" aria-labelledby="payment-due">
      <h2 id="payment-due" tabIndex={-1} data-tells>
        A payment did not get through
      </h2>
      <p>
        Pay by <DateTime at={ends} />. Otherwise the plan becomes free then, and its relays end at once. Left:{' '}
        <TimeLeft until={ends} over="over" />
      </p>
      {payAt === null ? (
        <p>Our billing provider has sent you a mail that leads to where you pay.</p>
      ) : (
        <p>
          <a class="button" href={payAt}>
            Pay now
          </a>
        </p>
      )}
    </section>
  ) : null

/** Without a plan they end at once; after add-ons were taken away the newest end with a notice of their own. */
const surplusOf = ({ active_managed_conns: used, max_concurrent_conns: limit }: Entitlement): number =>
  limit > 0 ? Math.max(0, used - limit) : 0

const Surplus = ({ entitlement }: Shown) => {
  const surplus = surplusOf(entitlement)
  if (surplus === 0) return null
  const { active_managed_conns: used, max_concurrent_conns: limit } = entitlement
  return (
    <p class="warning">
      {used} relays run and your plan has {limit} now, so the newest {surplus === 1 ? 'one ends' : `${surplus} end`}{' '}
      shortly. Stop {surplus === 1 ? 'one' : 'some'} yourself to choose which go on.
    </p>
  )
}

/** Of what goes with the plan, in whole percent; 0 while that is not worth a word. */
function percentOf({ consumed_seconds: used, included_seconds: included }: Usage): number {
  const percent = included > 0 ? Math.floor((used * 100) / included) : 0
  return percent >= 80 ? percent : 0
}

function Running({ usage }: { readonly usage: Usage }): ComponentChildren {
  const percent = percentOf(usage)
  if (percent === 0) return null
  const isEnforced = usage.enforcement === 'enforce'
  const anew = <Day at={usage.cycle_end} />
  if (percent >= 100)
    return (
      <p class={isEnforced ? 'problem' : 'warning'}>
        The relay time of this cycle is used up.{' '}
        {isEnforced
          ? 'Relays that run go on; new ones start again from '
          : 'Relays go on all the same. It is counted anew from '}
        {anew}.
      </p>
    )
  return (
    <p class="warning">
      {percent >= 95
        ? 'Almost all of this cycle’s relay time is used'
        : `${percent} % of this cycle’s relay time is used`}
      : {formatHours(usage.remaining_seconds)} left until {anew}.{' '}
      {isEnforced ? 'After that no new relay starts.' : 'Relays go on all the same after that.'}
    </p>
  )
}
