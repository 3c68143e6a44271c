/** Signing in, and being asked by a plugin to let it in: one address, since the plugin opens it for both. */
import { isTokenSet, signInCookies } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { showApproval } from './approval.tsx'
import { unknownAttempt } from './approval-outcomes.tsx'
import { EmailField, PasswordField, ProblemNote } from './fields.tsx'
import { approvalPath, isAboutPlugin, isAttemptId } from './login-attempt.ts'
import { configuredProviders, formatProviderNames, type ProviderName, SignInButtons } from './providers.tsx'
import { type Problem, problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/login',
  caller: 'anyone',
  handle: async (visit) => {
    const { query, isSignedIn } = visit
    const attempt = query.get('attempt')
    if (attempt !== null && !isAttemptId(attempt)) return unknownAttempt
    const next = attempt === null ? localPath(query.get('next'), '/relays') : approvalPath(attempt)
    if (isSignedIn) return attempt === null ? { redirectTo: next } : showApproval(visit, attempt)
    return loginPage(visit, { next, email: '', notice: noticeOf(query) })
  },
}

export const submit: PageRoute = {
  method: 'POST',
  path: '/login',
  caller: 'anyone',
  handle: async (visit) => {
    const { form, callApiAnonymously } = visit
    const [email, next] = [form.get('email') ?? '', localPath(form.get('next'), '/relays')]
    const answer = await callApiAnonymously('POST', '/api/v1/auth/login', {
      email,
      password: form.get('password') ?? '',
    })
    if (isTokenSet(answer.body)) return { redirectTo: next, cookies: signInCookies(answer.body) }
    return loginPage(visit, { next, email, problem: problemOf(answer), status: answer.status })
  },
}

/** What was done on the page that led here. The address names it, which anybody can write: no other words of it are shown. */
function noticeOf(query: URLSearchParams): string | undefined {
  if (query.get('done') !== 'reset') return undefined
  const unlinked = formatProviderNames(query.get('unlinked') ?? '')
  const signOutCookies =
    'Your new password is set. Browsers, phones and streaming software that were signed in to the account are signed out.'
  return [
    signOutCookies,
    ...(unlinked === '' ? [] : [`Unlinked: ${unlinked}.`]),
    'Sign in with the new password.',
  ].join(' ')
}

interface Shown {
  readonly next: string
  readonly email: string
  readonly notice?: string | undefined
  readonly problem?: Problem
  readonly status?: number
}

async function loginPage(visit: Visit, shown: Shown): Promise<PageResult> {
  const providers = await configuredProviders(visit)
  const title = isAboutPlugin(shown.next) ? 'Sign in to answer your streaming software' : 'Sign in'
  return { title, status: shown.status ?? 200, page: <Login {...shown} title={title} providers={providers} /> }
}

type LoginParts = Shown & { readonly title: string; readonly providers: readonly ProviderName[] }

const Login = ({ title, next, email, notice, problem, providers }: LoginParts) => (
  <section class="card narrow">
    <h1>{title}</h1>
    {isAboutPlugin(next) ? (
      <p>A program asks to be let in to your account. Sign in first: you will see which one, and then decide.</p>
    ) : null}
    {notice ? (
      <p class="notice" role="status">
        {notice}
      </p>
    ) : null}
    <ProblemNote problem={problem} />
    <form class="fields" method="post" action="/login">
      <input type="hidden" name="next" value={next} />
      <EmailField value={email} problem={problem} />
      <PasswordField problem={problem} />
      <button class="wide" type="submit">
        Sign in
      </button>
    </form>
    <SignInButtons providers={providers} next={next} />
    <p class="row apart">
      <a class="link" href={`/sign-up?next=${encodeURIComponent(next)}`}>
        Open an account
      </a>
      <a class="link" href="/forgot-password">
        Forgot your password?
      </a>
    </p>
  </section>
)
