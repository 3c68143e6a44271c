/** The checkout of the sandbox. */
import type { LegalPages } from '../../platform/config/legal.ts'
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import { PurchaseTerms } from '../legal-links.tsx'
import { describeLimit, formatRelays, formatRelayTime } from '../plan-terms.ts'
import { addPrices, formatPrice } from '../prices.ts'
import { nameOf, outcomePath, type Subscription } from './sandbox-subscriptions.tsx'

export const listPath = '/sandbox/subscriptions'

interface CheckoutProps {
  readonly subscription: Subscription
}

interface PricedCheckoutProps extends CheckoutProps {
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
}

interface LegalCheckoutProps extends PricedCheckoutProps {
  readonly legal: LegalPages
}

export const Checkout = ({ subscription, prices, relayTime, legal }: LegalCheckoutProps) => (
  <section class="card narrow">
    <h1>Checkout</h1>
    <p class="warning">This is a sandbox. You don’t need a card, and no money is moved.</p>
    <dl class="facts">
      <dt>Item</dt>
      <dd>
        <strong>{nameOf(subscription)}</strong>
      </dd>
      <dt>Includes</dt>
      <dd data-included-hours={subscription.quantity * relayTime.hoursPerRelay}>
        {describeRelays(subscription)} and {formatRelayTime(subscription.quantity, relayTime)}.{' '}
        {describeLimit(relayTime)}
      </dd>
      <CheckoutPrice subscription={subscription} prices={prices} />
    </dl>
    <form method="post" action={outcomePath(subscription, 'pay')} data-once>
      <input type="hidden" name="from" value="checkout" />
      <input type="hidden" name="version" value={subscription.version} />
      <PurchaseTerms legal={legal} />
      <button class="wide" type="submit">
        Pay
      </button>
    </form>
    <a class="button second wide" href="/account">
      Cancel
    </a>
  </section>
)

const CheckoutPrice = ({
  subscription: { kind, quantity },
  prices: { plan, addon, currency },
}: Omit<PricedCheckoutProps, 'relayTime'>) => {
  const price = kind === 'plan' ? plan : addPrices(quantity * addon)
  return price === undefined ? null : (
    <>
      <dt>Price</dt>
      <dd data-price={price}>
        <strong>{formatPrice(price, currency)}</strong> a month
      </dd>
    </>
  )
}

function describeRelays({ kind, quantity }: Subscription): string {
  if (kind === 'plan') return formatRelays(quantity)
  return quantity === 1 ? '1 more relay at once' : `${quantity} more relays at once`
}

export const PaidCheckout = ({ subscription }: CheckoutProps) => (
  <section class="card narrow">
    <h1>Already paid</h1>
    <p>{nameOf(subscription)}: there is nothing left to pay.</p>
    <a class="button second wide" href={listPath}>
      View sandbox subscriptions
    </a>
    <p>
      <a class="link" href="/account">
        Back to your account
      </a>
    </p>
  </section>
)
