/** People who buy at the sandbox, and have things happen to what they bought, by the api. */
import { type Answer, type ErrorBody, type GivenUser, outcome, type TestApi } from './api.ts'

export interface SandboxView {
  readonly subscription_id: string
  readonly kind: 'plan' | 'addon'
  readonly quantity: number
  readonly status: string
  readonly period_end: string | null
  readonly outcomes: readonly string[]
  readonly version: string
}

/** One subscription as its owner sees it. */
export interface OwnSubscription {
  readonly subscription_id: string
  readonly kind: 'plan' | 'addon'
  readonly status: string
  readonly quantity: number
  readonly renews_at: string | null
  readonly ends_at: string | null
  readonly billed_without_plan: boolean
  readonly billed_twice: boolean
  readonly can_cancel: boolean
}

export interface SubscriptionBody {
  readonly plan_tier: string
  readonly plan_status: string
  readonly addons: number
  readonly renews_at: string | null
  readonly ends_at: string | null
  readonly grace_ends_at: string | null
  readonly manage_url: string | null
  readonly subscriptions: readonly OwnSubscription[]
}

type Wanted = { readonly plan: 'paid' } | { readonly addons: number }
type Played = Answer<{ readonly subscription: SandboxView } & Partial<ErrorBody>>

export interface Customer extends GivenUser {
  checkout(wanted: unknown): Promise<Answer<{ readonly checkout_url: string } & Partial<ErrorBody>>>
  /** The id of a new subscription that is not paid yet. */
  order(wanted: Wanted): Promise<string>
  play(subscriptionId: string, what: string, body?: object): Promise<Played>
  /** Orders and pays. Answers the subscription's id. */
  buy(wanted: Wanted): Promise<string>
  /** What the sandbox knows, oldest first. */
  bought(): Promise<readonly SandboxView[]>
  subscription(): Promise<SubscriptionBody>
}

export function customerOf(api: TestApi, user: GivenUser): Customer {
  const { bearer } = user
  const list = '/billing/sandbox/subscriptions'
  const customer: Customer = {
    ...user,
    checkout: (wanted) => api.post('/billing/checkout', wanted as object, { bearer }),
    order: async (wanted) =>
      succeeded(await customer.checkout(wanted))
        .checkout_url.split('/')
        .at(-1) ?? '',
    play: (id, what, body) => api.post(`${list}/${id}/${what}`, body, { bearer }),
    buy: async (wanted) => {
      const id = await customer.order(wanted)
      succeeded(await customer.play(id, 'pay'))
      return id
    },
    bought: async () => (await api.get<{ subscriptions: readonly SandboxView[] }>(list, { bearer })).body.subscriptions,
    subscription: async () => (await api.get<SubscriptionBody>('/billing/subscription', { bearer })).body,
  }
  return customer
}

function succeeded<Body extends object>(answer: Answer<Body>): Body {
  if (answer.status !== 200) throw new Error(`this was to succeed: ${outcome(answer).join(' ')}`)
  return answer.body
}

/** An account that has nothing yet. */
export const newCustomer = async (api: TestApi): Promise<Customer> => customerOf(api, await api.given.user())
