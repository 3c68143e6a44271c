/** Deleting an account, and taking that back during the grace period. */
import type { Account } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { OwnerProofField, type OwnerProofState, readOwnerProof } from './account-owner-proof.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

const path = '/account/security/delete'

export const show: PageHandler = (visit) => deletePage(visit)

export const submit: PageHandler = async (visit) => {
  const password = visit.form.get('password')
  const body = password === null ? {} : { password }
  const result = await visit.api.POST('/api/v1/auth/account/delete', { body })
  const { status } = result.response
  if (status === 200) return { redirectTo: '/account/security?done=deletion_scheduled' }
  return deletePage(visit, { problem: problemOf(result), status })
}

export const restore: PageHandler = async (visit) => {
  const result = await visit.api.POST('/api/v1/auth/account/restore')
  const { status } = result.response
  if (status === 204) return { redirectTo: '/account/security?done=restored' }
  return deletePage(visit, { problem: problemOf(result), status })
}

/** On all pages of an account whose deletion is scheduled. */
export const DeletionBanner = ({ user: { deletion_due_at: dueAt } }: { readonly user: Account }) =>
  dueAt === undefined ? null : (
    <section class="card alarm" aria-labelledby="deletion" data-alert="deletion_scheduled" data-deletion-due={dueAt}>
      <h2 id="deletion">This account is going to be deleted</h2>
      <p>
        It will be deleted on <DateTime at={dueAt} />. Until then you can keep it. No relays can be started meanwhile,
        and its subscriptions are cancelled.
      </p>
      <form method="post" action="/account/security/restore">
        <button type="submit">Keep my account</button>
      </form>
    </section>
  )

/** The last part of the security page. */
export const DeleteAccount = ({ user }: { readonly user: Account }) =>
  user.deletion_due_at === undefined ? (
    <section class="card" aria-labelledby="delete">
      <h2 id="delete">Delete account</h2>
      <p class="muted">Ends your relays and your plan, and erases the account after a waiting time.</p>
      <p>
        <a class="button danger" href={path}>
          Delete account…
        </a>
      </p>
    </section>
  ) : null

interface Refusal {
  readonly problem: Problem
  readonly status: number
}

async function deletePage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const proof = await readOwnerProof(visit)
  return {
    name: 'account-delete',
    title: 'Delete account',
    section: 'account',
    layout: 'narrow',
    status: refused?.status ?? 200,
    page: (
      <section class="card narrow">
        <h1>Delete account</h1>
        <Effects graceSeconds={proof.graceSeconds} />
        <ProblemMessage problem={refused?.problem} />
        <DeleteForm proof={proof} problem={refused?.problem} />
        <a class="link" href="/account/security">
          Keep my account
        </a>
      </section>
    ),
  }
}

const DeleteForm = ({ proof, problem }: { readonly proof: OwnerProofState; readonly problem: Problem | undefined }) => (
  <form class="fields" method="post" action={path}>
    <OwnerProofField proof={proof} problem={problem} />
    {proof.isPossible ? (
      <button class="danger wide" type="submit">
        Delete account
      </button>
    ) : null}
  </form>
)

const Effects = ({ graceSeconds }: { readonly graceSeconds: number }) => (
  <>
    <p>When you delete your account:</p>
    <ul>
      <li>All relays stop at once. A stream that is on air ends.</li>
      <li>
        Your plan and add-ons are cancelled with the billing provider. You’re not charged again, and the time that you
        have paid for ends with the account.
      </li>
      <li>You’re signed out everywhere but here, streaming software included.</li>
      <li>
        After {formatGrace(graceSeconds)} the account is erased: settings, history, linked accounts and stream
        addresses. Until then you can sign in and keep it.
      </li>
    </ul>
  </>
)

/** `7 days`, or `2 hours` and `1 minute` for shorter times. */
function formatGrace(seconds: number): string {
  const [count, unit] =
    seconds >= 86_400
      ? [Math.floor(seconds / 86_400), 'day']
      : seconds >= 3600
        ? [Math.floor(seconds / 3600), 'hour']
        : [Math.max(1, Math.floor(seconds / 60)), 'minute']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
