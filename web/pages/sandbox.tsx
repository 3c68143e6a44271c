/**
 * The sandbox's own pages, in the place of a billing provider's: where one pays, and where one plays what happens to what was
 * bought. Where another provider is in use there are none.
 */
import { type ApiResponse, ApiUnavailableError, readApiError } from '../api.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'
import {
  nameOf,
  type Outcome,
  outcomes,
  pathOf,
  SandboxSubscription,
  type Subscription,
} from './sandbox-subscriptions.tsx'

export const checkout: PageRoute = {
  method: 'GET',
  path: '/sandbox/checkout/:subscription_id',
  caller: 'user',
  handle: async (visit) => {
    const own = await subscriptionsOf(visit)
    const one = own?.find((known) => known.subscription_id === visit.params.subscription_id)
    if (!one) return problemPage('not_found')
    return { title: 'Sandbox checkout', page: one.status === 'open' ? <Checkout one={one} /> : <Paid one={one} /> }
  },
}

export const list: PageRoute = {
  method: 'GET',
  path: '/sandbox/subscriptions',
  caller: 'user',
  handle: (visit) => listPage(visit),
}

/** Fields: the `version` of the subscription on the page; `quantity` of add-ons, where it changes; `from` the checkout. */
export const act: PageRoute = {
  method: 'POST',
  path: '/sandbox/subscriptions/:subscription_id/:outcome',
  caller: 'user',
  returnTo: '/sandbox/subscriptions',
  handle: async (visit) => {
    const { subscription_id: id = '', outcome = '' } = visit.params
    const one = (await subscriptionsOf(visit))?.find((known) => known.subscription_id === id)
    if (!one) return problemPage('not_found')
    const isCheckout = visit.form.get('from') === 'checkout'
    const version = visit.form.get('version') ?? ''
    const quantity = visit.form.get('quantity')
    const path = `/api/v1/billing/sandbox/subscriptions/${encodeURIComponent(id)}/${encodeURIComponent(outcome)}`
    const answer = await visit.callApi('POST', path, {
      version,
      ...(quantity !== null && { quantity: Number(quantity) }),
    })
    if (answer.status === 200)
      return {
        redirectTo: isCheckout ? '/account?done=bought' : `${listPath}?done=${quantity === null ? outcome : 'number'}`,
      }
    // It has happened all the same: a page that could be sent again would make it happen twice.
    if (readApiError(answer).code === 'billing_provider_error') return { redirectTo: `${listPath}?done=untold` }
    if (answer.status === 404) return problemPage('not_found')
    if (answer.status === 409 && (await hasChanged(visit, id, version)))
      return { redirectTo: isCheckout ? checkoutPathOf(one) : `${listPath}?done=changed` }
    return listPage(visit, answer)
  },
}

/** The api compares where it writes; asked afterwards, this says which of two reasons the refusal had. */
const hasChanged = async (visit: Visit, id: string, version: string): Promise<boolean> =>
  (await subscriptionsOf(visit))?.find((known) => known.subscription_id === id)?.version !== version

const listPath = '/sandbox/subscriptions'
const checkoutPathOf = ({ subscription_id: id }: Subscription): string => `/sandbox/checkout/${id}`

/** The visitor's; nothing where there is no sandbox. Rejects with {@link ApiUnavailableError}. */
async function subscriptionsOf(visit: Visit): Promise<readonly Subscription[] | undefined> {
  type Listed = { readonly subscriptions?: readonly Subscription[] }
  const { status, body } = await visit.callApi<Listed>('GET', '/api/v1/billing/sandbox/subscriptions')
  if (status === 404) return undefined
  if (!body.subscriptions) throw new ApiUnavailableError(`the api answered ${status} for the sandbox`)
  return body.subscriptions
}

const notices: Readonly<Record<Outcome | 'number', string>> = {
  pay: 'Paid. No money was moved.',
  number: 'The number of add-ons was changed.',
  fail: 'A payment has failed.',
  recover: 'The payment was made after all.',
  cancel: 'Cancelled: it goes on until the end of its period.',
  resume: 'Resumed.',
  refund: 'Paid back.',
  end: 'Ended.',
}

const noticed = [...outcomes, 'number'] as const

/** What else may have become of what was sent. */
const problems: ReadonlyMap<string, string> = new Map([
  ['changed', 'It had changed meanwhile, so nothing more was done.'],
  [
    'untold',
    'It has happened here, but the service did not take the message of it. The service compares the two by itself, within an hour or so.',
  ],
])

async function listPage(visit: Visit, refused?: ApiResponse): Promise<PageResult> {
  const subscriptions = await subscriptionsOf(visit)
  if (!subscriptions) return problemPage('not_found')
  const done = visit.query.get('done')
  return {
    title: 'Sandbox subscriptions',
    status: refused?.status ?? 200,
    page: (
      <Subscriptions
        subscriptions={subscriptions}
        problem={refused ? problemIn(refused) : problems.get(done ?? '')}
        played={noticed.find((one) => one === done)}
      />
    ),
  }
}

const problemIn = (refused: ApiResponse): string =>
  readApiError(refused).code === 'invalid_transition'
    ? `Nothing was done. ${readApiError(refused).message}`
    : problemOf(refused).text

interface Shown {
  readonly subscriptions: readonly Subscription[]
  readonly problem: string | undefined
  readonly played: (typeof noticed)[number] | undefined
}

const Subscriptions = ({ subscriptions, problem, played }: Shown) => (
  <>
    <h1>Sandbox subscriptions</h1>
    <p>
      This page stands in for that of a billing provider, and no money moves. A button plays what would happen there;
      the service hears of it by a signed message, as from a real one.
    </p>
    {problem ? (
      <p class="problem" role="alert">
        {problem}
      </p>
    ) : null}
    {played && !problem ? (
      <p class="notice" role="status">
        {notices[played]}
      </p>
    ) : null}
    {subscriptions.length === 0 ? <p>Nothing was bought yet.</p> : null}
    {subscriptions.toReversed().map((one) => (
      <SandboxSubscription key={one.subscription_id} one={one} />
    ))}
    <BackToAccount />
  </>
)

const BackToAccount = () => (
  <p>
    <a class="link" href="/account">
      Back to your account
    </a>
  </p>
)

const Checkout = ({ one }: { readonly one: Subscription }) => (
  <section class="card narrow">
    <h1>Pay for it</h1>
    <p class="warning">This is a sandbox: no card is asked for, and no money moves.</p>
    <dl class="facts">
      <dt>What</dt>
      <dd>
        <strong>{nameOf(one)}</strong>
      </dd>
      <dt>Brings</dt>
      <dd>{relaysIn(one)}</dd>
      {one.kind === 'addon' ? (
        <>
          <dt>Price</dt>
          <dd>{(one.quantity * 7.99).toFixed(2)} a month</dd>
        </>
      ) : null}
    </dl>
    <form method="post" action={pathOf(one, 'pay')} data-once>
      <input type="hidden" name="from" value="checkout" />
      <input type="hidden" name="version" value={one.version} />
      <button class="wide" type="submit">
        Pay
      </button>
    </form>
    <a class="button second wide" href="/account">
      Back without paying
    </a>
  </section>
)

function relaysIn({ kind, quantity }: Subscription): string {
  if (kind === 'plan') return 'One managed relay'
  return quantity === 1 ? 'One more relay at once' : `${quantity} more relays at once`
}

const Paid = ({ one }: { readonly one: Subscription }) => (
  <section class="card narrow">
    <h1>This was paid already</h1>
    <p>{nameOf(one)}: nothing more is to be done here.</p>
    <a class="button second wide" href={listPath}>
      Your sandbox subscriptions
    </a>
    <BackToAccount />
  </section>
)
