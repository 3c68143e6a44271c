/** Confirming a new email address. Mail programs open links by themselves, so only the form's button confirms. */
import { readApiError } from '../api-client.ts'
import type { PageHandler, PageResult } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

const path = '/confirm-email'

export const show: PageHandler = ({ query }) => {
  if (query.get('done') === 'changed') return changedPage
  const token = query.get('token') ?? ''
  return token === '' ? invalidLinkPage : confirmPage({ token })
}

export const submit: PageHandler = async ({ form, anonymousApi }) => {
  const token = form.get('token') ?? ''
  const result = await anonymousApi.POST('/api/v1/auth/email/change/confirm', { body: { token } })
  const { status } = result.response
  if (status === 204) return { redirectTo: `${path}?done=changed` }
  if (token === '' || readApiError(result).code === 'token_invalid') return invalidLinkPage
  return confirmPage({ token, problem: problemOf(result, problems), status })
}

const problems: Readonly<Record<string, string>> = {
  email_taken: 'Another account has this email address. Sign in to that account, or choose another email address.',
}

interface ConfirmForm {
  readonly token: string
  readonly problem?: Problem
  readonly status?: number
}

const confirmPage = ({ token, problem, status = 200 }: ConfirmForm): PageResult => ({
  name: 'confirm-email',
  title: 'Confirm your new email',
  layout: 'narrow',
  status,
  page: (
    <section class="card narrow">
      <h1>Confirm your new email</h1>
      <p>
        Someone asked to use the email address that received this link for their account.{' '}
        <strong>Only continue if that was you.</strong> Otherwise, close this page and nothing will change.
      </p>
      <ProblemMessage problem={problem} />
      <form class="fields" method="post" action={path}>
        <input type="hidden" name="token" value={token} />
        <button class="wide" type="submit">
          Confirm email
        </button>
      </form>
    </section>
  ),
})

const changedPage: PageResult = {
  name: 'email-changed',
  title: 'Email changed',
  layout: 'narrow',
  page: (
    <section class="card narrow">
      <h1>Email changed</h1>
      <p role="status" data-notice="email_changed">
        From now on you sign in with this email address. We have informed the former one.
      </p>
      <a class="button wide" href="/account/security">
        Continue
      </a>
    </section>
  ),
}

const invalidLinkPage: PageResult = {
  name: 'confirm-email-link-invalid',
  title: 'This link is invalid or has expired',
  layout: 'narrow',
  status: 400,
  page: (
    <section class="card narrow">
      <h1>This link is invalid or has expired</h1>
      <p role="alert" data-problem="token_invalid">
        The link to confirm a new email address expires after an hour and can be used once. The address may already be
        changed.
      </p>
      <a class="button second wide" href="/account/security">
        Go to your account
      </a>
    </section>
  ),
}
