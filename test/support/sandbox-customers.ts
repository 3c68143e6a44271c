/** Users who buy at the sandbox and play outcomes, through the API. */
import { type Answer, statusAndCode as codeOf, type ErrorBody, type GivenUser, type TestApi } from './api.ts'
import { eventually } from './relays.ts'

export interface SandboxView {
  readonly subscription_id: string
  readonly kind: 'plan' | 'addon'
  readonly quantity: number
  readonly status: string
  readonly period_end: string | null
  readonly outcomes: readonly string[]
  readonly version: string
}

/** An entry of `subscriptions` in `GET /billing/subscription`. */
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

type Product = { readonly plan: 'paid' } | { readonly addons: number }
type PlayReply = Answer<{ readonly subscription: SandboxView } & Partial<ErrorBody>>

export interface Customer extends GivenUser {
  checkout(product: unknown): Promise<Answer<{ readonly checkout_url: string } & Partial<ErrorBody>>>
  /** Resolves with the id of a new, unpaid subscription. */
  openSubscription(product: Product): Promise<string>
  /**
   * Plays an outcome. After a success it also waits until the workflow has applied it, however long a slow machine
   * takes.
   */
  play(subscriptionId: string, outcome: string, body?: object): Promise<PlayReply>
  /** The same without that wait. */
  playOnce(subscriptionId: string, outcome: string, body?: object): Promise<PlayReply>
  /** Opens and pays a subscription. Resolves with its id. */
  buy(product: Product): Promise<string>
  /** The sandbox's subscriptions, oldest first. */
  listSandboxSubscriptions(): Promise<readonly SandboxView[]>
  fetchSubscription(): Promise<SubscriptionBody>
}

export function createCustomer(api: TestApi, user: GivenUser): Customer {
  const { bearer } = user
  const list = '/billing/sandbox/subscriptions'
  const customer: Customer = {
    ...user,
    checkout: (product) => api.post('/billing/checkout', product as object, { bearer }),
    openSubscription: async (product) =>
      expectOk(await customer.checkout(product))
        .checkout_url.split('/')
        .at(-1) ?? '',
    play: async (id, outcome, body) => {
      const answer = await customer.playOnce(id, outcome, body)
      if (answer.status === 200)
        await eventually(
          () => api.sql`select from billing_events where user_id = ${user.userId} and status = 'pending'`,
          (pending) => pending.length === 0,
        )
      return answer
    },
    playOnce: (id, outcome, body) => api.post(`${list}/${id}/${outcome}`, body, { bearer }),
    buy: async (product) => {
      const id = await customer.openSubscription(product)
      expectOk(await customer.play(id, 'pay'))
      return id
    },
    listSandboxSubscriptions: async () =>
      (await api.get<{ subscriptions: readonly SandboxView[] }>(list, { bearer })).body.subscriptions,
    fetchSubscription: async () => (await api.get<SubscriptionBody>('/billing/subscription', { bearer })).body,
  }
  return customer
}

function expectOk<Body extends object>(answer: Answer<Body>): Body {
  if (answer.status !== 200) throw new Error(`expected status 200: ${codeOf(answer).join(' ')}`)
  return answer.body
}

export const newCustomer = async (api: TestApi): Promise<Customer> => createCustomer(api, await api.given.user())
