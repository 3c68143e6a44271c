/** What an account is, and what it may use. */
import { DateTime, Day, formatHours } from '../time-text.tsx'
import { Identifier } from './identifier.tsx'
import type { AccountDetail } from './operator-replies.ts'

type User = AccountDetail['user']

export const AccountFacts = ({ user }: { readonly user: User }) => {
  const linked = user.linked_accounts.filter((account) => account.linked)
  return (
    <section class="card" aria-labelledby="account">
      <h2 id="account">Account</h2>
      <dl class="facts">
        <dt>Id</dt>
        <dd>
          <Identifier value={user.id} />
        </dd>
        <dt>Email address</dt>
        <dd>
          <EmailState user={user} />
        </dd>
        <dt>Created</dt>
        <dd>
          <DateTime at={user.created_at} />
        </dd>
        <dt>State</dt>
        <dd data-disabled={user.disabled ? 'true' : 'false'}>
          {user.disabled ? (
            <span class="badge bad">disabled by an operator</span>
          ) : (
            <span class="badge good">active</span>
          )}
        </dd>
        <Deletion user={user} />
        <dt>Linked accounts</dt>
        <dd>{linked.length === 0 ? 'none' : linked.map(({ provider }) => provider).join(', ')}</dd>
      </dl>
    </section>
  )
}

const EmailState = ({ user: { email, email_verified: isVerified } }: { readonly user: User }) =>
  email === null ? (
    <span class="muted">none</span>
  ) : (
    <>
      {email} <span class={isVerified ? 'badge good' : 'badge warn'}>{isVerified ? 'verified' : 'not verified'}</span>
    </>
  )

const Deletion = ({ user: { deletion_due_at: due } }: { readonly user: User }) =>
  due ? (
    <>
      <dt>Deletion due</dt>
      <dd data-deletion-due={due}>
        <Day at={due} /> <span class="badge warn">scheduled by its owner</span>
      </dd>
    </>
  ) : null

/** The codes of `GET /relay/entitlement` in words. */
const reasonTexts: Readonly<Record<AccountDetail['entitlement']['reason_code'], string>> = {
  ok: 'It can start relays.',
  plan_required: 'It has no plan.',
  deletion_scheduled: 'Its owner has scheduled the deletion of the account.',
  operator_disabled: 'An operator disabled its relays or the account.',
  usage_exhausted: 'The relay time of this cycle is used up.',
}

type EntitlementFactsProps = Pick<AccountDetail, 'entitlement' | 'usage'>

export const EntitlementFacts = ({ entitlement, usage }: EntitlementFactsProps) => (
  <section class="card" aria-labelledby="entitlement">
    <h2 id="entitlement">Entitlement</h2>
    <dl class="facts">
      <dt>Relays</dt>
      <dd data-access={entitlement.reason_code}>
        <span class={entitlement.relay_access_status === 'enabled' ? 'badge good' : 'badge bad'}>
          {entitlement.relay_access_status}
        </span>{' '}
        {reasonTexts[entitlement.reason_code]}{' '}
        {entitlement.reason_code === 'ok' ? null : <code>{entitlement.reason_code}</code>}
      </dd>
      <dt>In use</dt>
      <dd>{`${entitlement.active_managed_conns} of ${entitlement.max_concurrent_conns} relays`}</dd>
      <dt>Plan</dt>
      <dd>{`${entitlement.plan_tier}, ${entitlement.plan_status}`}</dd>
      {entitlement.grace_ends_at === null ? null : (
        <>
          <dt>Payment grace ends</dt>
          <dd>
            <DateTime at={entitlement.grace_ends_at} />
          </dd>
        </>
      )}
      <dt>Relay time</dt>
      <dd>
        {`${formatHours(usage.consumed_seconds)} of ${formatHours(usage.included_seconds)}`}
        {usage.overage_seconds > 0 ? `, ${formatHours(usage.overage_seconds)} over` : ''}
      </dd>
      <dt>Cycle</dt>
      <dd>
        <Day at={usage.cycle_start} /> to <Day at={usage.cycle_end} />
      </dd>
    </dl>
  </section>
)
