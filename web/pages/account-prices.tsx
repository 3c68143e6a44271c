/** What a plan and its add-ons cost a month. */
import type { Prices } from '../../platform/config/site.ts'
import { addPrices, formatPrice } from '../prices.ts'

interface PlanPricesProps {
  readonly addons: number
  readonly prices: Prices
}

/** Without a configured price of the plan there is no total either. */
export function PlanPrices({ addons, prices: { plan, addon, currency } }: PlanPricesProps) {
  if (plan === undefined && addons === 0) return null
  const addonsPrice = addPrices(addons * addon)
  const total = plan === undefined ? undefined : addPrices(plan, addonsPrice)
  return (
    <dl class="prices" data-total-price={total}>
      {plan === undefined ? null : <PriceLine label="Paid plan" price={formatPrice(plan, currency)} />}
      {addons === 0 ? null : (
        <PriceLine
          label={`${addons} × add-on, ${formatPrice(addon, currency)} each`}
          price={formatPrice(addonsPrice, currency)}
        />
      )}
      {total === undefined ? null : <PriceLine label="Total a month" price={formatPrice(total, currency)} isTotal />}
    </dl>
  )
}

interface PriceLineProps {
  readonly label: string
  readonly price: string
  readonly isTotal?: boolean
}

const PriceLine = ({ label, price, isTotal = false }: PriceLineProps) => (
  <>
    <dt class={isTotal ? 'total' : undefined}>{label}</dt>
    <dd class={isTotal ? 'total' : undefined}>{price}</dd>
  </>
)
