/** Sign-in to the operator console and sign-out. */
import { operatorCredentials } from '../../client/client.ts'
import type { Reply } from '../../client/reply.ts'
import { consoleTarget, operatorSignInPath } from '../operator-access.ts'
import { endedOperatorCookie, operatorCookie, operatorCookieName } from '../operator-session.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { PasswordField } from '../pages/fields.tsx'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { problemPage } from '../pages/problem.tsx'
import { problemOf } from '../pages/refusal-text.ts'
import { cookiesRefusedPage } from '../pages/site-address.tsx'

type SignedIn = Reply<'post', '/admin/sign-in', 201>

export const show: PageHandler = async (visit) => {
  // Without a configured operator password the API has no routes for operators, and the console does not exist.
  const { response } = await visit.anonymousApi.GET('/api/v1/admin/jobs')
  if (response.status === 404) return problemPage('not_found')
  const next = consoleTarget(visit.query.get('next'))
  if (!visit.query.has('signed_in')) return signInPage({ next })
  return visit.cookie(operatorCookieName) ? { redirectTo: next } : cookiesRefusedPage(visit, signInPathWith(next))
}

export const submit: PageHandler = async (visit) => {
  const next = consoleTarget(visit.form.get('next'))
  const result = await requestToken(visit)
  const { status } = result.response
  if (status === 404) return problemPage('not_found')
  // Comes back first: a browser that keeps no cookies would ask for the password again and again.
  if (result.data) return { redirectTo: `${signInPathWith(next)}&signed_in=1`, cookies: [cookieOf(result.data)] }
  const problem = problemOf(result, { invalid_operator: 'The operator password is incorrect.' })
  return signInPage({ next, problem: { field: 'password', ...problem }, status })
}

const signInPathWith = (next: string): string => `${operatorSignInPath}?next=${encodeURIComponent(next)}`

const requestToken = ({ form, anonymousApi }: Visit) =>
  anonymousApi.POST('/api/v1/admin/sign-in', { body: {}, headers: operatorCredentials(form.get('password') ?? '') })

const cookieOf = ({ operator_token, expires_at }: SignedIn) =>
  operatorCookie(operator_token, Math.max(1, Math.floor((Date.parse(expires_at) - Date.now()) / 1000)))

export const signOut: PageHandler = async ({ operatorApi }) => {
  await operatorApi.POST('/api/v1/admin/sign-out', { body: {} })
  return { redirectTo: operatorSignInPath, cookies: [endedOperatorCookie] }
}

interface SignInForm {
  readonly next: string
  readonly problem?: Problem
  readonly status?: number
}

const signInPage = ({ next, problem, status = 200 }: SignInForm): PageResult => ({
  name: 'operator-sign-in',
  title: 'Sign in',
  console: 'sign-in',
  status,
  page: (
    <section class="card narrow">
      <h1>Sign in as an operator</h1>
      <p class="muted">Each sign-in and each act in the console is recorded in the audit.</p>
      <ProblemMessage problem={problem} />
      <form class="fields" method="post" action={operatorSignInPath}>
        <input type="hidden" name="next" value={next} />
        <PasswordField problem={problem} />
        <button class="wide" type="submit">
          Sign in
        </button>
      </form>
    </section>
  ),
})
