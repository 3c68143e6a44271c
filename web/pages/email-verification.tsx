/** Verifying an email address. Mail programs open links by themselves, so only the form's button verifies. */
import { readApiError } from '../api.ts'
import type { PageResult, PageRoute } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/verify-email',
  caller: 'anyone',
  // Opened from an email. It needs no sign-in and does not use up the token.
  allowsCrossSiteEntry: true,
  handle: ({ query }) => {
    if (query.get('done') === 'verified') return verifiedPage
    const token = query.get('token') ?? ''
    return token === '' ? invalidLinkPage : verifyPage({ token })
  },
}

export const submit: PageRoute = {
  method: 'POST',
  path: '/verify-email',
  caller: 'anyone',
  allowsCrossSiteEntry: true,
  handle: async ({ form, callApiAnonymously }) => {
    const token = form.get('token') ?? ''
    const response = await callApiAnonymously('POST', '/api/v1/auth/email/verify', { token })
    if (response.status === 204) return { redirectTo: '/verify-email?done=verified' }
    if (token === '' || readApiError(response).code === 'token_invalid') return invalidLinkPage
    return verifyPage({ token, problem: problemOf(response), status: response.status })
  },
}

interface VerifyForm {
  readonly token: string
  readonly problem?: Problem
  readonly status?: number
}

const verifyPage = ({ token, problem, status = 200 }: VerifyForm): PageResult => ({
  name: 'verify-email',
  title: 'Verify your email',
  status,
  page: (
    <section class="card narrow">
      <h1>Verify your email</h1>
      <p>
        An account was created with the email address that received this link.{' '}
        <strong>Only continue if you created it.</strong> Otherwise, close this page and nothing will change.
      </p>
      <ProblemMessage problem={problem} />
      <form class="fields" method="post" action="/verify-email">
        <input type="hidden" name="token" value={token} />
        <button class="wide" type="submit">
          Verify email
        </button>
      </form>
    </section>
  ),
})

const verifiedPage: PageResult = {
  name: 'email-verified',
  title: 'Email verified',
  page: (
    <section class="card narrow">
      <h1>Email verified</h1>
      <p role="status" data-notice="email_verified">
        You can now use this email address to recover your account.
      </p>
      <a class="button wide" href="/">
        Continue
      </a>
    </section>
  ),
}

const invalidLinkPage: PageResult = {
  name: 'verify-email-link-invalid',
  title: 'This link is invalid or has expired',
  status: 400,
  page: (
    <section class="card narrow">
      <h1>This link is invalid or has expired</h1>
      <p role="alert" data-problem="token_invalid">
        Verification links expire after 24 hours and can be used once. Your email may already be verified.
      </p>
      <p>Sign in to check. If it isn’t verified, you can send a new link from your account page.</p>
      <a class="button second wide" href="/account">
        Go to your account
      </a>
    </section>
  ),
}
