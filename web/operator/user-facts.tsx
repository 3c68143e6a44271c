/** What an account is, and what it may use. */
import { DateTime, Day, formatDuration, formatHours } from '../time-text.tsx'
import { Facts, None } from './facts.tsx'
import { Identifier } from './identifier.tsx'
import type { AccountDetail } from './operator-replies.ts'

type User = AccountDetail['user']

export const AccountFacts = ({ user }: { readonly user: User }) => {
  const linked = user.linked_accounts.filter((account) => account.linked)
  return (
    <section class="card" aria-labelledby="account">
      <h2 id="account">Account</h2>
      <Facts
        values={{
          Id: <Identifier value={user.id} />,
          'Email address': <EmailState user={user} />,
          Created: <DateTime at={user.created_at} />,
          State: <AccountState user={user} />,
          'Deletion due': user.deletion_due_at ? <Deletion due={user.deletion_due_at} /> : null,
          'Linked accounts': linked.length === 0 ? 'none' : linked.map(({ provider }) => provider).join(', '),
        }}
      />
    </section>
  )
}

const EmailState = ({ user: { email, email_verified: isVerified } }: { readonly user: User }) =>
  email === null ? (
    <None />
  ) : (
    <>
      {email} <span class={isVerified ? 'badge good' : 'badge warn'}>{isVerified ? 'verified' : 'not verified'}</span>
    </>
  )

const AccountState = ({ user: { disabled } }: { readonly user: User }) => (
  <span class={disabled ? 'badge bad' : 'badge good'} data-disabled={disabled ? 'true' : 'false'}>
    {disabled ? 'disabled by an operator' : 'active'}
  </span>
)

const Deletion = ({ due }: { readonly due: string }) => (
  <span data-deletion-due={due}>
    <Day at={due} /> <span class="badge warn">scheduled by its owner</span>
  </span>
)

/** The codes of `GET /relay/entitlement` in words. */
const reasonTexts: Readonly<Record<AccountDetail['entitlement']['reason_code'], string>> = {
  ok: 'It can start relays.',
  trial: 'It has no plan, and time of its trial left.',
  plan_required: 'It has no plan.',
  deletion_scheduled: 'Its owner has scheduled the deletion of the account.',
  operator_disabled: 'An operator disabled its relays or the account.',
  usage_exhausted: 'The relay time of this cycle is used up.',
}

type EntitlementFactsProps = Pick<AccountDetail, 'entitlement' | 'usage'>

export const EntitlementFacts = ({ entitlement, usage }: EntitlementFactsProps) => (
  <section class="card" aria-labelledby="entitlement">
    <h2 id="entitlement">Entitlement</h2>
    <Facts
      values={{
        Relays: <Access entitlement={entitlement} />,
        'In use': `${entitlement.active_managed_conns} of ${entitlement.max_concurrent_conns} relays`,
        Trial: entitlement.trial
          ? `${formatDuration(entitlement.trial.remaining_seconds)} of ${formatDuration(entitlement.trial.total_seconds)} left`
          : null,
        Plan: `${entitlement.plan_tier}, ${entitlement.plan_status}`,
        'Payment grace ends': entitlement.grace_ends_at === null ? null : <DateTime at={entitlement.grace_ends_at} />,
        'Relay time': `${formatHours(usage.consumed_seconds)} of ${formatHours(usage.included_seconds)}${
          usage.overage_seconds > 0 ? `, ${formatHours(usage.overage_seconds)} over` : ''
        }`,
        Cycle: (
          <>
            <Day at={usage.cycle_start} /> to <Day at={usage.cycle_end} />
          </>
        ),
      }}
    />
  </section>
)

const Access = ({
  entitlement: { relay_access_status: status, reason_code: reason },
}: Pick<EntitlementFactsProps, 'entitlement'>) => (
  <span data-access={reason}>
    <span class={status === 'enabled' ? 'badge good' : 'badge bad'}>{status}</span> {reasonTexts[reason]}{' '}
    {reason === 'ok' ? null : <code>{reason}</code>}
  </span>
)
