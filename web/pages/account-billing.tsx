/** Purchases: the plan's renewal, what can be bought, and the links to checkout and the billing portal. */

import type { ApiResult } from '../../client/api-error.ts'
import { addonsMax, relayLimit } from '../../domain/billing/plans.ts'
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import { unchecked } from '../api-client.ts'
import type { Billing } from '../api-replies.ts'
import type { PageResult, Visit } from '../page.ts'
import { formatRelayTime } from '../plan-terms.ts'
import { addPrices, formatPrice } from '../prices.ts'
import { DateTime, Day } from '../time-text.tsx'

interface BillingProps {
  readonly billing: Billing
}

/** `1 add-on`, `3 add-ons`. */
export const formatAddons = (count: number): string => `${count} ${count === 1 ? 'add-on' : 'add-ons'}`

/** When the plan renews or ends. A failed payment has an alert of its own (`plan-alerts.tsx`). */
export function Renewal({ billing }: BillingProps) {
  const { plan_status: status, renews_at: renews, ends_at: ends } = billing
  if (status === 'active' && renews !== null)
    return (
      <p data-renewal="renews">
        Renews on <Day at={renews} />.
      </p>
    )
  if (status === 'active' && isComplimentary(billing))
    return (
      <p data-renewal="complimentary">
        This plan is complimentary, so you are not charged.{' '}
        {ends === null ? null : (
          <>
            It ends on <Day at={ends} />.
          </>
        )}
      </p>
    )
  if (ends === null) return null
  return (
    <p data-renewal="ends">
      Your plan is cancelled and stays active until <DateTime at={ends} />. It then switches to the free plan and its
      relays stop.
    </p>
  )
}

/** Of an active plan: a purchased one has no end, and a billing provider that manages it. */
export const isComplimentary = ({ ends_at: ends, manage_url: manage }: Billing): boolean =>
  ends !== null || manage === null

export const Addons = ({ billing: { plan_tier: tier, addons } }: BillingProps) =>
  addons === 0 ? null : (
    <p data-addons={addons}>
      {tier === 'paid'
        ? `Includes 1 relay from your plan and ${addons} from your ${addons === 1 ? 'add-on' : 'add-ons'}.`
        : `You have ${formatAddons(addons)}. ${addons === 1 ? 'It works' : 'They work'} with the paid plan only.`}
    </p>
  )

interface PurchasesProps extends BillingProps {
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
}

export const Purchases = ({ billing, prices, relayTime }: PurchasesProps) => (
  <>
    <PurchaseForms billing={billing} prices={prices} relayTime={relayTime} />
    {billing.manage_url === null ? null : (
      <p class="row">
        <a class="button second" href={billing.manage_url}>
          Manage billing
        </a>
        {manageHint(billing)}
      </p>
    )}
  </>
)

function manageHint({ plan_tier: tier, plan_status: status, last_payment_failed: hasFailed }: Billing): string | null {
  if (tier === 'free')
    return hasFailed ? 'Did your plan end because a payment failed? Pay the open invoice here to restore it.' : null
  return status === 'cancelled' ? 'Changed your mind? Resume your plan here.' : null
}

/** A free account buys the plan from the comparison of plans. */
function PurchaseForms({ billing, prices, relayTime }: PurchasesProps) {
  const { plan_status: status, addons, ends_at: ends } = billing
  if (status === 'cancelled') return <PlanForm text="Subscribe again" className="second" />
  if (status !== 'active') return null
  return (
    <>
      {ends === null ? null : (
        <>
          <p>To keep the paid plan after that date, subscribe. The subscription starts, and is billed, right away.</p>
          <PlanForm text={planFormText(prices)} className="second" />
        </>
      )}
      {addons < addonsMax ? <AddonsForm addons={addons} prices={prices} relayTime={relayTime} /> : null}
    </>
  )
}

const planFormText = ({ plan, currency }: Prices): string =>
  plan === undefined ? 'Get the paid plan' : `Get the paid plan for ${formatPrice(plan, currency)} a month`

export const PlanForm = ({ text, className }: { readonly text: string; readonly className: '' | 'second' }) => (
  <form method="post" action="/account/checkout" data-once>
    <input type="hidden" name="plan" value="paid" />
    <button class={className} type="submit">
      {text}
    </button>
  </form>
)

interface AddonsFormProps {
  readonly addons: number
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
}

/** Sends the total number of add-ons, so that a form that is submitted twice does not buy twice as many. */
const AddonsForm = ({ addons, prices: { addon, currency }, relayTime }: AddonsFormProps) => (
  <form class="fields" method="post" action="/account/checkout">
    <div class="field">
      <label for="addons">Total add-ons</label>
      <select id="addons" name="addons" aria-describedby="addons_hint">
        {Array.from({ length: addonsMax - addons }, (_, index) => addons + index + 1).map((count) => (
          <option key={count} value={count}>
            {`${formatAddons(count)}: ${relayLimit({ planTier: 'paid', addons: count })} relays, ${formatPrice(addPrices(count * addon), currency)} a month`}
          </option>
        ))}
      </select>
      <p class="muted" id="addons_hint">
        Each add-on adds another relay and {formatRelayTime(1, relayTime)}, for {formatPrice(addon, currency)} a month.
        Up to {addonsMax} add-ons.
      </p>
    </div>
    <button class="second" type="submit">
      Buy add-ons
    </button>
  </form>
)

/**
 * Forwards to the checkout page, which may be a page of this site (the sandbox).
 * @param renderRefusal renders the page when the API refuses the checkout.
 */
export async function redirectToCheckout(
  visit: Visit,
  renderRefusal: (result: ApiResult) => Promise<PageResult>,
): Promise<PageResult> {
  const addons = visit.form.get('addons')
  const body = addons === null ? { plan: unchecked<'paid'>(visit.form.get('plan') ?? '') } : { addons: Number(addons) }
  const result = await visit.api.POST('/api/v1/billing/checkout', { body })
  if (!result.data) return renderRefusal(result)
  const url = new URL(result.data.checkout_url)
  if (url.origin === visit.origin) return { redirectTo: url.pathname + url.search }
  return { continueTo: url.href, message: 'Redirecting to checkout…' }
}

/**
 * Forwards to the billing portal, at an address that is valid for this visitor and a short time.
 * @param renderRefusal renders the page when the API refuses it.
 */
export async function redirectToBillingPortal(
  visit: Visit,
  renderRefusal: (result: ApiResult) => Promise<PageResult>,
): Promise<PageResult> {
  const result = await visit.api.POST('/api/v1/billing/portal')
  if (!result.data) return renderRefusal(result)
  const url = new URL(result.data.portal_url)
  if (url.origin === visit.origin) return { redirectTo: url.pathname + url.search }
  return { continueTo: url.href, message: 'Redirecting to billing…' }
}

export const checkoutProblems: Readonly<Record<string, string>> = {
  already_subscribed: 'You already have this, so you were not charged. Your current plan is shown below.',
  billing_provider_error: 'We couldn’t open the checkout, so you were not charged. Try again in a moment.',
  invalid_request: 'This item isn’t available. Choose a plan or add-ons below.',
}

export const portalProblems: Readonly<Record<string, string>> = {
  billing_provider_error:
    'We couldn’t open the billing portal. Try again in a moment, or use the link in an email from our billing provider.',
  not_found: 'You haven’t bought anything yet, so there is no billing to manage.',
}
