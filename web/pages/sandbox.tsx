/** The sandbox in place of a billing provider: its checkout, and a page that simulates events of subscriptions. */
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import { readApiError, unchecked } from '../api-client.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'
import { Checkout, listPath, PaidCheckout } from './sandbox-checkout.tsx'
import { type Outcome, outcomes, SandboxSubscription, type Subscription } from './sandbox-subscriptions.tsx'

export const checkout: PageHandler = async (visit) => {
  const subscription = await findSubscription(visit, visit.params.subscription_id)
  if (!subscription) return problemPage('not_found')
  const title = 'Sandbox checkout'
  return subscription.status === 'open'
    ? {
        name: 'sandbox-checkout',
        title,
        page: <Checkout subscription={subscription} {...visit.config} />,
      }
    : { name: 'sandbox-checkout-paid', title, page: <PaidCheckout subscription={subscription} /> }
}

export const list: PageHandler = (visit) => listPage(visit)

/**
 * Fields: `version` of the subscription, `quantity` of add-ons when it changes, and `from=checkout` on the checkout.
 */
export const simulate: PageHandler = async (visit) => {
  const { subscription_id: id = '', outcome = '' } = visit.params
  if (!(await findSubscription(visit, id))) return problemPage('not_found')
  const isCheckout = visit.form.get('from') === 'checkout'
  const version = visit.form.get('version') ?? ''
  const quantity = visit.form.get('quantity')
  const body = { version, ...(quantity !== null && { quantity: Number(quantity) }) }
  const result = await visit.api.POST('/api/v1/billing/sandbox/subscriptions/{subscription_id}/{outcome}', {
    params: { path: { subscription_id: id, outcome: unchecked<Outcome>(outcome) } },
    body,
  })
  const { status } = result.response
  if (status === 200) {
    const done = quantity === null ? outcome : 'number'
    return { redirectTo: isCheckout ? '/account?done=bought' : `${listPath}?done=${done}` }
  }
  // The sandbox has applied it. Redirecting prevents that a reload applies it again.
  if (readApiError(result).code === 'billing_provider_error') return { redirectTo: `${listPath}?done=undelivered` }
  if (status === 404) return problemPage('not_found')
  if (status === 409 && (await hasChanged(visit, id, version)))
    return { redirectTo: isCheckout ? `/sandbox/checkout/${id}` : `${listPath}?done=changed` }
  return listPage(visit, result)
}

/** Distinguishes the two reasons of a 409: an outdated version, or an outcome that the status does not allow. */
const hasChanged = async (visit: Visit, id: string, version: string): Promise<boolean> =>
  (await findSubscription(visit, id))?.version !== version

const findSubscription = async (visit: Visit, id: string | undefined): Promise<Subscription | undefined> =>
  (await listSubscriptions(visit))?.find(({ subscription_id }) => subscription_id === id)

/** The visitor's. Undefined when another billing provider is configured. Throws for any other refusal. */
async function listSubscriptions(visit: Visit): Promise<readonly Subscription[] | undefined> {
  const result = await visit.api.GET('/api/v1/billing/sandbox/subscriptions')
  if (result.response.status === 404) return undefined
  return expectSuccess(result, 'The list of sandbox subscriptions').subscriptions
}

/** By the `done` parameter. */
const noticeTexts: Readonly<Record<Outcome | 'number', string>> = {
  pay: 'Paid. No money was moved.',
  number: 'Number of add-ons changed.',
  fail: 'Payment failed.',
  recover: 'Payment recovered.',
  cancel: 'Cancelled. It stays active until the end of its period.',
  resume: 'Resumed.',
  refund: 'Refunded.',
  end: 'Ended.',
}

const noticeCodes = [...outcomes, 'number'] as const

/** By the `done` parameter too. */
const problemTexts: ReadonlyMap<string, string> = new Map([
  ['changed', 'This subscription was changed in the meantime, so nothing was done.'],
  [
    'undelivered',
    'The sandbox applied this, but its webhook was not delivered. Your account will be updated within an hour or so.',
  ],
])

async function listPage(visit: Visit, refused?: ApiResult): Promise<PageResult> {
  const subscriptions = await listSubscriptions(visit)
  if (!subscriptions) return problemPage('not_found')
  const done = visit.query.get('done') ?? ''
  const text = problemTexts.get(done)
  const problem = refused ? refusalOf(refused) : text === undefined ? undefined : { code: done, text }
  return {
    name: 'sandbox-subscriptions',
    title: 'Sandbox subscriptions',
    status: refused?.response.status ?? 200,
    page: <Subscriptions subscriptions={subscriptions} problem={problem} done={done} />,
  }
}

function refusalOf(result: ApiResult): Problem {
  const { code, message } = readApiError(result)
  return code === 'invalid_transition' ? { code, text: `Nothing was done. ${message}` } : problemOf(result)
}

interface SubscriptionsProps {
  readonly subscriptions: readonly Subscription[]
  readonly problem: Problem | undefined
  readonly done: string
}

const Subscriptions = ({ subscriptions, problem, done }: SubscriptionsProps) => {
  const notice = noticeCodes.find((code) => code === done)
  return (
    <>
      <h1>Sandbox subscriptions</h1>
      <p>
        The sandbox replaces a billing provider: no money is moved. Each button simulates an event, which the service
        receives as a signed webhook, as from a real provider.
      </p>
      {problem ? <ProblemMessage problem={problem} /> : null}
      {notice && !problem ? (
        <NoticeMessage notice={{ code: notice, text: noticeTexts[notice], isWarning: notice === 'fail' }} />
      ) : null}
      {subscriptions.length === 0 ? <p>No subscriptions yet.</p> : null}
      {subscriptions.toReversed().map((subscription) => (
        <SandboxSubscription key={subscription.subscription_id} subscription={subscription} />
      ))}
      <p>
        <a class="link" href="/account">
          Back to your account
        </a>
      </p>
    </>
  )
}
