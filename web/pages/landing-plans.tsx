/** The plans with their prices, and the regions with their capacity, on the landing page. */
import type { ComponentChildren } from 'preact'
import { addonsMax } from '../../domain/plans.ts'
import type { Prices } from '../../platform/config/site.ts'
import { Icon } from '../icons.tsx'
import { formatPrice } from '../prices.ts'
import { type Capacity, CapacityBadge } from './capacity.tsx'

export const Plans = ({ prices }: { readonly prices: Prices }) => (
  <section class="section" aria-labelledby="plans">
    <div class="section-head">
      <h2 id="plans">Plans</h2>
      <p>Start with the free plan. Add a managed relay when you want one, and cancel at any time.</p>
    </div>
    <div class="plans">
      <FreePlan currency={prices.currency} />
      <PaidPlan prices={prices} />
    </div>
  </section>
)

const FreePlan = ({ currency }: { readonly currency: string }) => (
  <section class="card plan" aria-labelledby="plan-free">
    <h3 id="plan-free">Free</h3>
    <Price amount={formatPrice(0, currency)} note="no card needed" />
    <ul class="checks">
      <Check>Relays of your own, as many as you like</Check>
      <Check>Full telemetry in the plugin</Check>
      <Check>Sign in with email, or with an account you have</Check>
    </ul>
    <a class="button second" href="/sign-up">
      Create a free account
    </a>
  </section>
)

const PaidPlan = ({ prices: { plan, addon, currency } }: { readonly prices: Prices }) => (
  <section class="card plan featured" aria-labelledby="plan-paid" data-plan-price={plan}>
    <h3 id="plan-paid">Paid</h3>
    {plan === undefined ? (
      <Price amount="Monthly" note="the checkout shows the price" />
    ) : (
      <Price amount={formatPrice(plan, currency)} note="a month" />
    )}
    <ul class="checks">
      <Check>1 managed relay, started and watched for you</Check>
      <Check>Live bitrate and links, and the history of every relay</Check>
      <Check>Notifications by email, webhook or Discord</Check>
      <Check>
        <span data-addon-price={addon}>
          Up to {addonsMax} more relays at once, {formatPrice(addon, currency)} a month each
        </span>
      </Check>
      <Check>Everything in Free</Check>
    </ul>
    <a class="button" href="/sign-up?next=%2Faccount">
      Get the paid plan
    </a>
  </section>
)

const Price = ({ amount, note }: { readonly amount: string; readonly note: string }) => (
  <p class="price">
    <strong>{amount}</strong> <span class="muted">{note}</span>
  </p>
)

const Check = ({ children }: { readonly children: ComponentChildren }) => (
  <li>
    <Icon name="check" />
    <span>{children}</span>
  </li>
)

/** @param capacity undefined while the API is unavailable. */
export const Regions = ({ capacity }: { readonly capacity: Capacity | undefined }) => (
  <section class="section" aria-labelledby="regions">
    <div class="section-head">
      <h2 id="regions">Regions</h2>
      <p>Choose the region nearest to where you stream from. This is how much room they have right now.</p>
    </div>
    {capacity ? (
      <ul class="regions">
        {capacity.regions.map(({ region, display_name: name, status }) => (
          <li key={region} class="card row apart" data-region={region}>
            <span class="row">
              <Icon name="map-pin" />
              <strong>{name}</strong>
            </span>
            <CapacityBadge status={status} />
          </li>
        ))}
      </ul>
    ) : (
      <p class="muted" data-regions="unavailable">
        The state of the regions is unavailable right now. <a href="/status">Status page</a>
      </p>
    )}
  </section>
)
