/** The pages for a plugin's sign-in that is no longer pending. */
import type { LoginAttempt } from '../api-replies.ts'
import type { PageResult } from '../page.ts'
import { DecisionForm } from './approval-question.tsx'
import { approvalPath } from './login-attempt.ts'
import type { Problem } from './messages.tsx'
import { requestFailedPage } from './request-failed.tsx'

type Outcome = Exclude<LoginAttempt['status'], 'pending'>

export const outcomePages: Readonly<Record<Outcome, (attempt: LoginAttempt) => PageResult>> = {
  approved: (attempt) => ({
    name: 'approval-approved',
    title: 'Approved',
    page: (
      <section class="card narrow">
        <h1>Approved</h1>
        <p class="notice" role="status" data-notice="approved">
          Return to your streaming software. It will finish signing in automatically.
        </p>
        <p>
          Didn’t mean to approve <bdi>{attempt.client_name}</bdi>? You can still deny it until it has signed in.
        </p>
        <DecisionForm decision="deny" text="Deny" attempt={attempt} />
      </section>
    ),
  }),
  consumed: ({ client_name }) => ({
    name: 'approval-consumed',
    title: 'Signed in',
    page: (
      <section class="card narrow">
        <h1>Your streaming software is signed in</h1>
        <p class="notice" role="status" data-notice="consumed">
          You can close this page and return to it.
        </p>
        <p>
          <bdi>{client_name}</bdi> is now listed on your <a href="/account/security">security page</a>, where you can
          sign it out at any time.
        </p>
      </section>
    ),
  }),
  denied: () => ({
    name: 'approval-denied',
    title: 'Access denied',
    page: (
      <section class="card narrow">
        <h1>Access denied</h1>
        <p role="status" data-notice="denied">
          The streaming software was not signed in.
        </p>
        <p>If it was yours, start signing in again from it. It will show a new code.</p>
        <p>
          If someone sent you the link or asked you for the code, they were trying to get into your account. They didn’t
          succeed.
        </p>
        <RelaysLink />
      </section>
    ),
  }),
  expired: () => ({
    name: 'approval-expired',
    title: 'This sign-in request has expired',
    status: 410,
    page: (
      <section class="card narrow">
        <h1>This sign-in request has expired</h1>
        <p>Requests expire after 5 minutes. If your streaming software is signed in, there is nothing to do.</p>
        <p>Otherwise, start signing in again from your streaming software to get a new code.</p>
        <RelaysLink />
      </section>
    ),
  }),
}

/** Also for a login attempt that another account has decided, which is not visible to this one. */
export const unknownAttempt: PageResult = {
  name: 'approval-unknown',
  title: 'Sign-in request not found',
  status: 404,
  page: (
    <section class="card narrow">
      <h1>Sign-in request not found</h1>
      <p>The link is incomplete, or another account has already answered the request.</p>
      <p>Start signing in again from your streaming software to get a new link and code.</p>
      <RelaysLink />
    </section>
  ),
}

/** The API could not read or decide the login attempt. */
export const approvalFailedPage = (status: number, problem: Problem, attempt: string): PageResult =>
  requestFailedPage('approval-failed', status, problem, approvalPath(attempt))

function RelaysLink() {
  return (
    <p>
      <a class="link" href="/relays">
        Go to your relays
      </a>
    </p>
  )
}
