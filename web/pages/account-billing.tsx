/** Buying: what there is to buy, what becomes of what was bought, and where it is managed. */
import { type ApiResponse, readApiError } from '../api.ts'
import type { PageResult, Visit } from '../page.ts'
import { DateTime, Day } from '../time-text.tsx'

/** One of `subscriptions` in the body of `GET /billing/subscription`. */
export interface Subscription {
  readonly subscription_id: string
  readonly kind: 'plan' | 'addon'
  readonly status: 'active' | 'past_due' | 'cancelled' | 'ended'
  readonly quantity: number
  readonly renews_at: string | null
  readonly ends_at: string | null
  readonly billed_without_plan: boolean
  readonly billed_twice: boolean
  readonly can_cancel: boolean
}

/** The body of `GET /billing/subscription`. */
export interface Billing {
  readonly plan_tier: 'free' | 'paid'
  readonly plan_status: 'none' | 'active' | 'past_due' | 'cancelled'
  readonly addons: number
  readonly renews_at: string | null
  readonly ends_at: string | null
  readonly grace_ends_at: string | null
  readonly manage_url: string | null
  /** At the billing provider, those that have not ended. */
  readonly subscriptions: readonly Subscription[]
}

interface Bought {
  readonly billing: Billing
}

const addonsMax = 3

/** `1 add-on`, `3 add-ons`. */
export const formatAddons = (count: number): string => `${count} ${count === 1 ? 'add-on' : 'add-ons'}`

/** What becomes of the plan by itself. That of a failed payment stands above everything else of the page. */
export function Prospect({ billing }: Bought) {
  const { plan_status: status, renews_at: renews, ends_at: ends } = billing
  if (status === 'active' && renews !== null)
    return (
      <p>
        It renews on <Day at={renews} />.
      </p>
    )
  if (status === 'active' && isComplimentary(billing))
    return (
      <p>
        It is complimentary: nobody is charged for it.{' '}
        {ends === null ? null : (
          <>
            It ends on <Day at={ends} />.
          </>
        )}
      </p>
    )
  if (ends === null) return null
  return (
    <p>
      It was cancelled, and is paid until <DateTime at={ends} />. Then it becomes free, and its relays end.
    </p>
  )
}

/** Of an active plan: one that is paid for has no end, and a provider that has it. */
const isComplimentary = ({ ends_at: ends, manage_url: manage }: Billing): boolean => ends !== null || manage === null

export const Addons = ({ billing: { plan_tier: tier, addons } }: Bought) =>
  addons === 0 ? null : (
    <p>
      {tier === 'paid'
        ? `One relay goes with the plan, and one with ${addons === 1 ? 'your add-on' : `each of your ${addons} add-ons`}.`
        : `${formatAddons(addons)} ${addons === 1 ? 'is' : 'are'} on record. They count once you have the plan.`}
    </p>
  )

export const Buying = ({ billing }: Bought) => (
  <>
    <ToBuy billing={billing} />
    {billing.manage_url === null ? null : (
      <p class="row">
        <a class="button second" href={billing.manage_url}>
          Manage payments
        </a>
        {managingHelps(billing)}
      </p>
    )}
  </>
)

function managingHelps({ plan_tier: tier, plan_status: status }: Billing): string | null {
  if (tier === 'free') return 'Did your plan end over a failed payment? Pay that one here, and it is back.'
  return status === 'cancelled' ? 'Changed your mind? Resume it here.' : null
}

function ToBuy({ billing }: Bought) {
  const { plan_tier: tier, plan_status: status, addons, ends_at: ends } = billing
  if (tier === 'free')
    return (
      <>
        <p>
          The paid plan has one managed relay. Each add-on is one more: 7.99 a month each, up to {addonsMax} of them.
        </p>
        <PlanForm says="Get the paid plan" look="" />
      </>
    )
  if (status === 'cancelled') return <PlanForm says="Buy it anew" look="second" />
  if (status !== 'active') return null
  return (
    <>
      {ends === null ? null : (
        <>
          <p>To keep the plan after that day, buy it. It begins when you buy it, and is billed from then on.</p>
          <PlanForm says="Get the paid plan" look="second" />
        </>
      )}
      {addons < addonsMax ? <AddonsForm addons={addons} /> : null}
    </>
  )
}

const PlanForm = ({ says, look }: { readonly says: string; readonly look: '' | 'second' }) => (
  <form method="post" action="/account/checkout" data-once>
    <input type="hidden" name="plan" value="paid" />
    <button class={look} type="submit">
      {says}
    </button>
  </form>
)

/** The number is that of all of them, so that a form that is sent twice does not buy twice as many. */
const AddonsForm = ({ addons }: { readonly addons: number }) => (
  <form class="fields" method="post" action="/account/checkout">
    <div class="field">
      <label for="addons">Add-ons in all</label>
      <select id="addons" name="addons" aria-describedby="addons_hint">
        {[1, 2, 3]
          .filter((count) => count > addons)
          .map((count) => (
            <option key={count} value={count}>
              {`${formatAddons(count)}: ${count + 1} relays at once`}
            </option>
          ))}
      </select>
      <p class="muted" id="addons_hint">
        An add-on is one more relay: 7.99 a month each, up to {addonsMax} of them.
      </p>
    </div>
    <button class="second" type="submit">
      Add an add-on
    </button>
  </form>
)

/**
 * On the way to where one pays, which may be a page of this site.
 * @param refused shows why not.
 */
export async function redirectToCheckout(
  visit: Visit,
  refused: (answer: ApiResponse) => Promise<PageResult>,
): Promise<PageResult> {
  const addons = visit.form.get('addons')
  const wanted = addons === null ? { plan: visit.form.get('plan') } : { addons: Number(addons) }
  const answer = await visit.callApi<{ checkout_url: string }>('POST', '/api/v1/billing/checkout', wanted)
  if (answer.status !== 200) return refused(answer)
  const url = new URL(answer.body.checkout_url)
  if (url.origin === visit.origin) return { redirectTo: url.pathname + url.search }
  return { continueTo: url.href, message: 'Going to where you pay …' }
}

const problems: Readonly<Record<string, string>> = {
  already_subscribed: 'You have this already, so nothing was bought. What you have is shown below.',
  billing_provider_error: 'The page where you pay could not be opened, so nothing was bought. Try again in a moment.',
  invalid_request: 'There is no such thing to buy: choose again below.',
}

/** Why nothing was bought; nothing where the refusal is about something else. */
export const checkoutProblem = (answer: ApiResponse): string | undefined => problems[readApiError(answer).code]
