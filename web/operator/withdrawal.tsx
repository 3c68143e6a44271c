/** One withdrawal from a contract, and the acts of operators that refund it. */
import type { ComponentChildren } from 'preact'
import type { PageResult, Visit } from '../page.ts'
import { ActForm } from './act-form.tsx'
import { createActs, type Outcome, OutcomeMessages } from './acts.tsx'
import { Facts, None } from './facts.tsx'
import { Identifier, UserLink } from './identifier.tsx'
import type { OperatorWithdrawal } from './operator-replies.ts'
import { refusedPage } from './refused-page.tsx'
import { WithdrawalStatus } from './state-badges.tsx'
import { withdrawalsPath } from './withdrawals.tsx'

const { show, act } = createActs({
  pathOf: ({ params }) => `${withdrawalsPath}/${params.id}`,
  notices: {
    refund: 'The provider has ended the subscription and refunded it. Its webhook ends the access within seconds.',
    'mark-refunded': 'The withdrawal is marked as refunded.',
  },
  page: withdrawalPage,
})

export { show }

const sendAs =
  (name: 'refund' | 'mark-refunded') =>
  ({ operatorApi }: Visit, path: { readonly id: string }, reason: string) =>
    operatorApi.POST(`/api/v1/admin/billing/withdrawals/{id}/${name}`, { params: { path }, body: { reason } })

export const refund = act('refund', sendAs('refund'))
export const markRefunded = act('mark-refunded', sendAs('mark-refunded'))

async function withdrawalPage(visit: Visit, outcome: Outcome): Promise<PageResult> {
  const path = { id: visit.params.id ?? '' }
  const result = await visit.operatorApi.GET('/api/v1/admin/billing/withdrawals/{id}', { params: { path } })
  if (!result.data) return refusedPage('billing', 'Withdrawal', result)
  return {
    name: 'operator-withdrawal',
    title: 'Withdrawal',
    console: 'billing',
    status: outcome.status ?? 200,
    page: (
      <WithdrawalPage withdrawal={result.data.withdrawal}>
        <OutcomeMessages outcome={outcome} />
      </WithdrawalPage>
    ),
  }
}

interface WithdrawalPageProps {
  readonly withdrawal: OperatorWithdrawal
  readonly children: ComponentChildren
}

const WithdrawalPage = ({ withdrawal, children }: WithdrawalPageProps) => (
  <>
    <div class="page-head">
      <h1>Withdrawal</h1>
      <p class="row">
        <WithdrawalStatus of={withdrawal} />
      </p>
    </div>
    {children}
    {withdrawal.refund_error === null ? null : (
      <p class="warning" data-refund-error>
        The last refund failed: {withdrawal.refund_error}.
      </p>
    )}
    <section
      class="card"
      aria-labelledby="withdrawal"
      data-withdrawal={withdrawal.id}
      data-refunded={withdrawal.refunded ?? 'no'}
    >
      <h2 id="withdrawal">Contract</h2>
      <Facts
        values={{
          Id: <Identifier value={withdrawal.id} />,
          Account: <UserLink of={withdrawal} />,
          Provider: withdrawal.provider,
          Subscription: <Identifier value={withdrawal.subscription_id} />,
          Item: withdrawal.kind === 'plan' ? 'plan' : `add-on × ${withdrawal.quantity}`,
          Refunded: withdrawal.refunded ?? <None />,
        }}
        times={{
          Bought: withdrawal.purchased_at,
          Received: withdrawal.received_at,
          'Refunded at': withdrawal.refunded_at,
          'Last failure': withdrawal.refund_failed_at,
        }}
      />
    </section>
    {withdrawal.refunded_at === null ? <WithdrawalActs withdrawal={withdrawal} /> : null}
  </>
)

const WithdrawalActs = ({ withdrawal: { id, can_refund: canRefund } }: { readonly withdrawal: OperatorWithdrawal }) => (
  <section class="card" aria-labelledby="acts">
    <h2 id="acts">Act on this withdrawal</h2>
    <div class="acts">
      {canRefund ? (
        <ActForm
          id="refund"
          action={`${withdrawalsPath}/${id}/refund`}
          label="Refund"
          explanation="Ends the subscription at the provider at once, and refunds in full what was paid for it."
          isDangerous
        />
      ) : null}
      <ActForm
        id="mark-refunded"
        action={`${withdrawalsPath}/${id}/mark-refunded`}
        label="Mark as refunded"
        explanation="For a refund that you have made elsewhere. Changes nothing at the provider: end the subscription there too."
      />
    </div>
  </section>
)
