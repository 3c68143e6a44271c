/** Opening an account with an address and a password. */
import { readApiError } from '../api.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { EmailField, NewPasswordField, ProblemNote } from './fields.tsx'
import { configuredProviders, type ProviderName, SignInButtons } from './providers.tsx'
import { type Problem, problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/sign-up',
  caller: 'anyone',
  handle: (visit) => {
    const next = localPath(visit.query.get('next'), '/relays')
    return visit.isSignedIn ? { redirectTo: next } : signUpPage(visit, { next, email: '' })
  },
}

export const submit: PageRoute = {
  method: 'POST',
  path: '/sign-up',
  caller: 'anyone',
  handle: async (visit) => {
    const { form, callApiAnonymously } = visit
    const [email, next] = [form.get('email') ?? '', localPath(form.get('next'), '/relays')]
    const answer = await callApiAnonymously('POST', '/api/v1/auth/signup', {
      email,
      password: form.get('password') ?? '',
    })
    if (isTokenSet(answer.body)) return { redirectTo: next, cookies: signInCookies(answer.body) }
    if (answer.status === 202) return lookIntoYourMail(email, next)
    const isTaken = readApiError(answer).code === 'email_taken'
    const problem = isTaken ? { ...problemOf(answer), field: 'email' } : problemOf(answer)
    return signUpPage(visit, { next, email, problem, status: answer.status, isTaken })
  },
}

interface Shown {
  readonly next: string
  readonly email: string
  readonly problem?: Problem
  readonly status?: number
  readonly isTaken?: boolean
}

async function signUpPage(visit: Visit, shown: Shown): Promise<PageResult> {
  const providers = await configuredProviders(visit)
  return { title: 'Open an account', status: shown.status ?? 200, page: <SignUp {...shown} providers={providers} /> }
}

const SignUp = ({
  next,
  email,
  problem,
  isTaken,
  providers,
}: Shown & { readonly providers: readonly ProviderName[] }) => (
  <section class="card narrow">
    <h1>Open an account</h1>
    <ProblemNote problem={problem} />
    {isTaken ? (
      <p>
        <a href={`/login?next=${encodeURIComponent(next)}`}>Sign in</a>, or{' '}
        <a href="/forgot-password">choose another password</a> if you have lost it.
      </p>
    ) : null}
    <form class="fields" method="post" action="/sign-up">
      <input type="hidden" name="next" value={next} />
      <EmailField value={email} problem={problem} />
      <NewPasswordField problem={problem} />
      <button class="wide" type="submit">
        Open the account
      </button>
    </form>
    <SignInButtons providers={providers} next={next} />
    <p>
      <a class="link" href={`/login?next=${encodeURIComponent(next)}`}>
        You have an account? Sign in
      </a>
    </p>
  </section>
)

/** The same whether the address has an account or not. */
const lookIntoYourMail = (email: string, next: string): PageResult => ({
  title: 'Look into your mail',
  page: (
    <section class="card narrow">
      <h1>Look into your mail</h1>
      <p role="status">
        If <strong>{email}</strong> is new here, a link is on its way to it. Open it and confirm the address, then sign
        in.
      </p>
      <p class="muted">Nothing there after a few minutes? Look among the spam. Signing in sends the link again.</p>
      <a class="button second wide" href={`/login?next=${encodeURIComponent(next)}`}>
        To the sign-in
      </a>
    </section>
  ),
})
