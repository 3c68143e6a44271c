/** Requesting a password reset. The link in the email opens `password-reset.tsx`. */
import type { PageHandler, PageResult } from '../page.ts'
import { EmailField } from './fields.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = () => forgotPasswordPage({ email: '' })

export const submit: PageHandler = async ({ form, anonymousApi }) => {
  const email = form.get('email') ?? ''
  const result = await anonymousApi.POST('/api/v1/auth/password/forgot', { body: { email } })
  const { status } = result.response
  if (status === 202) return checkEmailPage(email)
  return forgotPasswordPage({ email, problem: problemOf(result), status })
}

interface ForgotPasswordForm {
  readonly email: string
  readonly problem?: Problem
  readonly status?: number
}

const forgotPasswordPage = ({ email, problem, status = 200 }: ForgotPasswordForm): PageResult => ({
  name: 'forgot-password',
  title: 'Reset your password',
  status,
  page: (
    <section class="card narrow">
      <h1>Reset your password</h1>
      <p>Enter the email address of your account, and we’ll send you a link to reset your password.</p>
      <ProblemMessage problem={problem} />
      <form class="fields" method="post" action="/forgot-password">
        <EmailField value={email} problem={problem} />
        <button class="wide" type="submit">
          Send reset link
        </button>
      </form>
      <BackToLogin />
    </section>
  ),
})

/** The same for every address, so that it does not reveal which ones have an account. */
const checkEmailPage = (email: string): PageResult => ({
  name: 'forgot-password-email-sent',
  title: 'Check your email',
  page: (
    <section class="card narrow">
      <h1>Check your email</h1>
      <p role="status" data-notice="email_sent">
        If <strong>{email}</strong> has an account, we’ve sent it a link to reset the password. The link expires in 30
        minutes and can be used once.
      </p>
      <p class="muted">No email after a few minutes? Check your spam folder and the address above.</p>
      <BackToLogin />
    </section>
  ),
})

function BackToLogin() {
  return (
    <p>
      <a class="link" href="/login">
        Back to sign-in
      </a>
    </p>
  )
}
