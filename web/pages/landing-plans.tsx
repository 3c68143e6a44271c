/** The plans with their prices, and the regions with their capacity, on the landing page. */
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import { Icon } from '../icons.tsx'
import { type Capacity, CapacityBadge } from './capacity.tsx'
import { FreePlan, PaidPlan } from './plan-cards.tsx'

interface PlansProps {
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
}

export const Plans = ({ prices, relayTime }: PlansProps) => (
  <section class="section" aria-labelledby="plans">
    <div class="section-head">
      <h2 id="plans">Plans</h2>
      <p>Start with the free plan. Add a managed relay when you want one, and cancel at any time.</p>
    </div>
    <div class="plans">
      <FreePlan prices={prices}>
        <a class="button second" href="/sign-up">
          Create a free account
        </a>
      </FreePlan>
      <PaidPlan prices={prices} relayTime={relayTime}>
        <a class="button" href="/sign-up?next=%2Faccount">
          Get the paid plan
        </a>
      </PaidPlan>
    </div>
  </section>
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
