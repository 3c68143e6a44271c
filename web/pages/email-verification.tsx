/** Confirming that an account's address is one's own. Mail programs open links by themselves, so only a button does it. */
import { readApiError } from '../api.ts'
import type { PageResult, PageRoute } from '../page.ts'
import { ProblemNote } from './fields.tsx'
import { type Problem, problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/verify-email',
  caller: 'anyone',
  // From a mail: it needs no sign-in, and looking at it uses nothing up.
  allowsCrossSiteEntry: true,
  handle: ({ query }) =>
    query.get('done') === 'verified' ? verified : confirmPage({ token: query.get('token') ?? '' }),
}

export const submit: PageRoute = {
  method: 'POST',
  path: '/verify-email',
  caller: 'anyone',
  allowsCrossSiteEntry: true,
  handle: async ({ form, callApiAnonymously }) => {
    const token = form.get('token') ?? ''
    const answer = await callApiAnonymously('POST', '/api/v1/auth/email/verify', { token })
    if (answer.status === 204) return { redirectTo: '/verify-email?done=verified' }
    if (readApiError(answer).code === 'token_invalid') return confirmPage({ token: '' })
    return confirmPage({ token, problem: problemOf(answer), status: answer.status })
  },
}

interface Shown {
  /** Empty when there is none that works. */
  readonly token: string
  readonly problem?: Problem
  readonly status?: number
}

const confirmPage = ({ token, problem, status = 200 }: Shown): PageResult =>
  token === ''
    ? linkOver
    : {
        title: 'Confirm your address',
        status,
        page: (
          <section class="card narrow">
            <h1>Confirm your address</h1>
            <p>
              Somebody opened an account here with the address that this link was sent to.{' '}
              <strong>Confirm only if that was you.</strong> If it was not, close this page, and nothing happens.
            </p>
            <ProblemNote problem={problem} />
            <form class="fields" method="post" action="/verify-email">
              <input type="hidden" name="token" value={token} />
              <button class="wide" type="submit">
                Confirm
              </button>
            </form>
          </section>
        ),
      }

const verified: PageResult = {
  title: 'Address confirmed',
  page: (
    <section class="card narrow">
      <h1>Your address is confirmed</h1>
      <p role="status">From now on it can be used to get back into your account.</p>
      <a class="button wide" href="/">
        Go on
      </a>
    </section>
  ),
}

const linkOver: PageResult = {
  title: 'This link does not work',
  status: 400,
  page: (
    <section class="card narrow">
      <h1>This link does not work any more</h1>
      <p role="alert">It works once, within 24 hours. Perhaps the address is confirmed already.</p>
      <p>Sign in to find out. If it is not, you get another link by email, or can have one sent under “Account”.</p>
      <a class="button second wide" href="/account">
        To your account
      </a>
    </section>
  ),
}
