/** The plans with what they include and what they cost, side by side. */
import type { ComponentChildren } from 'preact'
import { addonsMax } from '../../domain/billing/plans.ts'
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import { Icon } from '../icons.tsx'
import { describeLimit, formatRelays, formatRelayTime, planRelays, relaysMax } from '../plan-terms.ts'
import { formatPrice } from '../prices.ts'

interface CardProps {
  readonly prices: Prices
  /** The button, or a text in its place. */
  readonly children: ComponentChildren
}

export const FreePlan = ({ prices: { currency }, children }: CardProps) => (
  <section class="card plan" aria-labelledby="plan-free">
    <h3 id="plan-free">Free</h3>
    <Price amount={formatPrice(0, currency)} note="no card needed" />
    <ul class="checks">
      <Check>Relays of your own, as many as you like</Check>
      <Check>Full telemetry in the plugin</Check>
      <Check>Sign in with email, or with an account you have</Check>
    </ul>
    {children}
  </section>
)

interface PaidCardProps extends CardProps {
  readonly relayTime: RelayTimeTerms
}

export const PaidPlan = ({ prices: { plan, addon, currency }, relayTime, children }: PaidCardProps) => (
  <section class="card plan featured" aria-labelledby="plan-paid" data-plan-price={plan}>
    <h3 id="plan-paid">Paid</h3>
    {plan === undefined ? (
      <Price amount="Monthly" note="the checkout shows the price" />
    ) : (
      <Price amount={formatPrice(plan, currency)} note="a month" />
    )}
    <ul class="checks">
      <Check>{formatRelays(planRelays)}, started and watched for you</Check>
      <Check>
        <span data-included-hours={planRelays * relayTime.hoursPerRelay} data-at-limit={relayTime.enforcement}>
          {capitalize(formatRelayTime(planRelays, relayTime))}. {describeLimit(relayTime)}
        </span>
      </Check>
      <Check>Live bitrate and links, and the history of every relay</Check>
      <Check>Notifications by email, webhook or Discord</Check>
      <Check>
        <span data-addon-price={addon}>
          Up to {addonsMax} more relays at once, {formatPrice(addon, currency)} a month each: {relaysMax} relays with{' '}
          {formatRelayTime(relaysMax, relayTime)}
        </span>
      </Check>
      <Check>Everything in Free</Check>
    </ul>
    {children}
  </section>
)

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

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
