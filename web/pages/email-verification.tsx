/** Verifying an email address. Mail programs open links by themselves, so only the form's button verifies. */

import { expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import { readApiError } from '../api-client.ts'
import type { PageHandler, PageResult } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = async ({ query, anonymousApi }) => {
  if (query.get('done') === 'verified') return verifiedPage
  const token = query.get('token') ?? ''
  return (await pageOfUnusableLink(anonymousApi, token)) ?? verifyPage({ token })
}

export const submit: PageHandler = async ({ form, anonymousApi }) => {
  const token = form.get('token') ?? ''
  const result = await anonymousApi.POST('/api/v1/auth/email/verify', { body: { token } })
  const { status } = result.response
  if (status === 204) return { redirectTo: '/verify-email?done=verified' }
  if (readApiError(result).code === 'token_invalid')
    return (await pageOfUnusableLink(anonymousApi, token)) ?? invalidLinkPage
  return verifyPage({ token, problem: problemOf(result), status })
}

/** Undefined if the link can verify its address. */
async function pageOfUnusableLink(anonymousApi: ApiClient, token: string): Promise<PageResult | undefined> {
  if (token === '') return invalidLinkPage
  const result = await anonymousApi.POST('/api/v1/auth/email/verify/preview', { body: { token } })
  if (readApiError(result).code === 'token_invalid') return invalidLinkPage
  return expectSuccess(result, 'The preview of a verification').already_verified ? alreadyVerifiedPage : undefined
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

const alreadyVerifiedPage: PageResult = {
  name: 'email-already-verified',
  title: 'Already verified',
  page: (
    <section class="card narrow">
      <h1>Already verified</h1>
      <p role="status" data-notice="already_verified">
        This email address is already verified. There is nothing left to do.
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
        Verification links expire after 24 hours and can be used once.
      </p>
      <p>Sign in to check. If it isn’t verified, you can send a new link from the security page of your account.</p>
      <a class="button second wide" href="/account/security">
        Go to your account
      </a>
    </section>
  ),
}
