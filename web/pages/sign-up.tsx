/** Creating an account with an email address and a password. */

import type { LegalPages } from '../../platform/config/legal.ts'
import { readApiError } from '../api-client.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import { acceptedTerms, TermsField, TermsSentence } from '../legal-links.tsx'
import { localPath } from '../local-path.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { EmailField, NewPasswordField } from './fields.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { configuredProviders, type ProviderName, SignInButtons } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = (visit) => {
  const next = localPath(visit.query.get('next'), '/relays')
  return visit.isSignedIn ? { redirectTo: next } : signUpPage(visit, { next, email: '' })
}

export const submit: PageHandler = async (visit) => {
  const { form, anonymousApi } = visit
  const [email, next] = [form.get('email') ?? '', localPath(form.get('next'), '/relays')]
  const body = { email, password: form.get('password') ?? '', ...acceptedTerms(form) }
  const result = await anonymousApi.POST('/api/v1/auth/signup', { body })
  if (isTokenSet(result.data)) return { redirectTo: next, cookies: signInCookies(result.data) }
  const { status } = result.response
  if (status === 202) return checkEmailPage(email, next)
  const isTaken = readApiError(result).code === 'email_taken'
  const problem = isTaken ? { ...problemOf(result), field: 'email' } : problemOf(result)
  return signUpPage(visit, { next, email, problem, status, isTaken })
}

interface SignUpForm {
  readonly next: string
  readonly email: string
  readonly problem?: Problem
  readonly status?: number
  readonly isTaken?: boolean
}

async function signUpPage(visit: Visit, form: SignUpForm): Promise<PageResult> {
  const page = <SignUp {...form} providers={await configuredProviders(visit)} legal={visit.config.legal} />
  const preview = { description: 'Create an account and start a relay. The free plan needs no card.' }
  return { name: 'sign-up', title: 'Create account', preview, status: form.status ?? 200, page }
}

type SignUpProps = SignUpForm & { readonly providers: readonly ProviderName[]; readonly legal: LegalPages }

const SignUp = ({ next, email, problem, isTaken, providers, legal }: SignUpProps) => (
  <section class="card narrow">
    <h1>Create account</h1>
    <ProblemMessage problem={problem} />
    {isTaken ? (
      <p>
        <a href={`/login?next=${encodeURIComponent(next)}`}>Sign in</a>, or{' '}
        <a href="/forgot-password">reset your password</a>.
      </p>
    ) : null}
    <form class="fields" method="post" action="/sign-up">
      <input type="hidden" name="next" value={next} />
      <EmailField value={email} problem={problem} />
      <p class="muted">We’ll email you a link to verify this address.</p>
      <NewPasswordField problem={problem} />
      <TermsField legal={legal} />
      <TermsSentence legal={legal} act="By creating an account" />
      <button class="wide" type="submit">
        Create account
      </button>
    </form>
    <SignInButtons providers={providers} next={next} legal={legal} />
    <p>
      <a class="link" href={`/login?next=${encodeURIComponent(next)}`}>
        Already have an account? Sign in
      </a>
    </p>
  </section>
)

/** The same for every address, so that it does not reveal which ones have an account. */
const checkEmailPage = (email: string, next: string): PageResult => ({
  name: 'sign-up-email-sent',
  title: 'Check your email',
  page: (
    <section class="card narrow">
      <h1>Check your email</h1>
      <p role="status" data-notice="email_sent">
        If <strong>{email}</strong> doesn’t have an account yet, we’ve sent it a verification link. Open the link to
        verify your email address, then sign in.
      </p>
      <p class="muted">No email after a few minutes? Check your spam folder. Signing in sends the link again.</p>
      <a class="button second wide" href={`/login?next=${encodeURIComponent(next)}`}>
        Go to sign-in
      </a>
    </section>
  ),
})
