/** Withdrawing from a contract: the button on the account page, the page that confirms it, and what was received. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Contract, Withdrawal, Withdrawals } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { formatAddons } from './account-billing.tsx'
import { EmailField } from './fields.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'

const pathOf = (subscriptionId: string): string => `/account/withdrawals/${encodeURIComponent(subscriptionId)}`

const itemOf = ({ kind, quantity }: Contract | Withdrawal): string =>
  kind === 'plan' ? 'Paid plan' : formatAddons(quantity)

interface WithdrawalsProps {
  readonly of: Withdrawals
}

/** Nothing for an account without contracts of the last two weeks and without withdrawals. */
export const WithdrawalCard = ({ of: { contracts, withdrawals } }: WithdrawalsProps) =>
  contracts.length === 0 && withdrawals.length === 0 ? null : (
    <section class="card" aria-labelledby="withdrawals" data-contracts={contracts.length}>
      <h2 id="withdrawals">Right of withdrawal</h2>
      {contracts.map((contract) => (
        <OpenContract key={contract.subscription_id} contract={contract} />
      ))}
      {withdrawals.map((withdrawal) => (
        <ReceivedWithdrawal key={withdrawal.id} withdrawal={withdrawal} />
      ))}
    </section>
  )

const OpenContract = ({ contract }: { readonly contract: Contract }) => {
  const { subscription_id: id, form_url: form, purchased_at: bought, withdraw_until: until } = contract
  const descriptionId = `contract-${id}`
  return (
    <div class="row apart" data-contract={id}>
      <p id={descriptionId}>
        {itemOf(contract)}, bought on <DateTime at={bought} />. You can withdraw from this contract until{' '}
        <DateTime at={until} /> without giving a reason.
        {form === null ? null : ' The seller is our billing provider, which has a form for it.'}
      </p>
      <a class="button second" href={form ?? pathOf(id)} aria-describedby={descriptionId}>
        Withdraw from the contract here
      </a>
    </div>
  )
}

const ReceivedWithdrawal = ({ withdrawal }: { readonly withdrawal: Withdrawal }) => {
  const { id, received_at: received, refunded_at: refunded, receipt_email: email } = withdrawal
  return (
    <p data-withdrawal={id} data-refunded={refunded === null ? undefined : ''}>
      {itemOf(withdrawal)}: we received your withdrawal on <DateTime at={received} />
      {email === null ? '. ' : `, and sent a receipt to ${email}. `}
      {refunded === null ? (
        'We refund what you paid within 14 days. Your access ends with the refund.'
      ) : (
        <>
          It was refunded on <DateTime at={refunded} />.
        </>
      )}
    </p>
  )
}

export const readWithdrawals = async ({ api }: Visit): Promise<Withdrawals> =>
  expectSuccess(await api.GET('/api/v1/billing/withdrawals'), 'The list of withdrawals')

export const show: PageHandler = (visit) => confirmPage(visit)

export const submit: PageHandler = async (visit) => {
  const { params, form, api } = visit
  const [name, email] = ['name', 'email'].map((field) => form.get(field)?.trim() ?? '')
  const body = {
    subscription_id: params.subscription_id ?? '',
    ...(name ? { name } : {}),
    ...(email ? { email } : {}),
  }
  const result = await api.POST('/api/v1/billing/withdrawals', { body })
  const { status } = result.response
  if (status === 200) return { redirectTo: '/account?done=withdrawn' }
  if (status === 404) return problemPage('not_found')
  return confirmPage(visit, { problem: problemOf(result), status })
}

interface Refusal {
  readonly problem: Problem
  readonly status: number
}

async function confirmPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const id = visit.params.subscription_id ?? ''
  const [{ contracts, withdrawals }, session] = await Promise.all([
    readWithdrawals(visit),
    visit.api.GET('/api/v1/auth/session'),
  ])
  // A form that was submitted twice, or a page from the browser's history.
  if (withdrawals.some((withdrawal) => withdrawal.subscription_id === id)) return { redirectTo: '/account' }
  const contract = contracts.find(({ subscription_id, form_url }) => subscription_id === id && form_url === null)
  if (!contract) return problemPage('not_found')
  const { user } = expectSuccess(session, 'A request of the withdrawal page')
  const values = { name: visit.form.get('name') ?? '', email: visit.form.get('email') ?? user.email ?? '' }
  return {
    name: 'account-withdrawal',
    title: 'Withdraw from the contract',
    section: 'account',
    layout: 'narrow',
    status: refused?.status ?? 200,
    page: <Confirm contract={contract} brandName={visit.config.brandName} values={values} problem={refused?.problem} />,
  }
}

interface ConfirmProps {
  readonly contract: Contract
  readonly brandName: string
  readonly values: { readonly name: string; readonly email: string }
  readonly problem: Problem | undefined
}

const Confirm = ({ contract, brandName, values, problem }: ConfirmProps) => (
  <section class="card narrow">
    <h1>Withdraw from the contract</h1>
    <ProblemMessage problem={problem} />
    <p>You withdraw from this contract:</p>
    <dl class="facts">
      <dt>With</dt>
      <dd>{brandName}</dd>
      <dt>Item</dt>
      <dd>
        <strong>{itemOf(contract)}</strong>
      </dd>
      <dt>Bought</dt>
      <dd>
        <DateTime at={contract.purchased_at} />
      </dd>
      <dt>Subscription</dt>
      <dd>
        <code class="identifier whole">{contract.subscription_id}</code>
      </dd>
    </dl>
    <p>
      We refund what you paid for it within 14 days, by the same means of payment. Your access ends with the refund:
      relays that the rest of your plan does not include stop.
    </p>
    <form class="fields" method="post" action={pathOf(contract.subscription_id)} data-once>
      <div class="field">
        <label for="name">Your name (optional)</label>
        <input id="name" name="name" autocomplete="name" maxlength={200} value={values.name} />
      </div>
      <EmailField value={values.email} problem={problem} label="Email address for the receipt" />
      <button class="danger wide" type="submit">
        Confirm withdrawal
      </button>
    </form>
    <a class="link" href="/account">
      Keep my contract
    </a>
  </section>
)
