/** What became of a plugin's login, and what to do next. */
import type { PageResult } from '../page.ts'
import { Decision } from './approval-question.tsx'
import { type Attempt, approvalPath } from './login-attempt.ts'

export const outcomes: Readonly<Record<Exclude<Attempt['status'], 'pending'>, (attempt: Attempt) => PageResult>> = {
  approved: (attempt) => ({
    title: 'Approved',
    page: (
      <section class="card narrow">
        <h1>Approved</h1>
        <p class="notice" role="status">
          Go back to your streaming software: it signs in by itself in a moment.
        </p>
        <p>
          <bdi>{attempt.client_name}</bdi> is being let in. Was that a mistake? Be quick:
        </p>
        <Decision act="deny" says="Keep it out" attempt={attempt} />
      </section>
    ),
  }),
  consumed: ({ client_name }) => ({
    title: 'Signed in',
    page: (
      <section class="card narrow">
        <h1>Your streaming software is signed in</h1>
        <p class="notice" role="status">
          Go back to it. You can close this page.
        </p>
        <p>
          <bdi>{client_name}</bdi> now stands under <a href="/account">where you are signed in</a>. You can sign it out
          there at any time.
        </p>
      </section>
    ),
  }),
  denied: () => ({
    title: 'Denied',
    page: (
      <section class="card narrow">
        <h1>Denied</h1>
        <p role="status">Nobody was let in.</p>
        <p>If it was you after all, start signing in again in your streaming software: it shows a new code.</p>
        <p>
          If somebody sent you the link or asked for the code: that was an attempt to get into your account. It has
          failed.
        </p>
        <BackToRelays />
      </section>
    ),
  }),
  expired: () => ({
    title: 'Too late',
    status: 410,
    page: (
      <section class="card narrow">
        <h1>This sign-in is over</h1>
        <p>It could be answered for 5 minutes. If your streaming software is signed in already, all is well.</p>
        <p>If not, start signing in again there: it opens a new page with a new code.</p>
        <BackToRelays />
      </section>
    ),
  }),
}

/** Also one that another account has decided: it is nobody else's to see. */
export const unknownAttempt: PageResult = {
  title: 'Unknown sign-in',
  status: 404,
  page: (
    <section class="card narrow">
      <h1>We do not know this sign-in</h1>
      <p>The link is not complete, or the sign-in was answered with another account.</p>
      <p>Start signing in again in your streaming software: it opens a new page with a new code.</p>
      <BackToRelays />
    </section>
  ),
}

/** The api could not tell, or not do it. */
export const notDone = (status: number, says: string, attempt: string): PageResult => ({
  title: 'Not done',
  status,
  page: (
    <section class="card narrow">
      <h1>That did not work yet</h1>
      <p class="problem" role="alert">
        {says}
      </p>
      <a class="button second wide" href={approvalPath(attempt)}>
        See how it stands
      </a>
    </section>
  ),
})

function BackToRelays() {
  return (
    <p>
      <a class="link" href="/relays">
        To your relays
      </a>
    </p>
  )
}
