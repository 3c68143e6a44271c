/** The login page. Plugins open the same path with `attempt`; signed-in visitors then approve the plugin's sign-in. */
import type { LegalPages } from '../../platform/config/legal.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import { TermsSentence } from '../legal-links.tsx'
import { localPath } from '../local-path.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { showApproval } from './approval.tsx'
import { unknownAttempt } from './approval-outcomes.tsx'
import { isConnectPath } from './connect-path.ts'
import { EmailField, PasswordField } from './fields.tsx'
import { approvalPath, isApprovalPath, isAttemptId } from './login-attempt.ts'
import { type Notice, NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { configuredProviders, formatProviderNames, type ProviderName, SignInButtons } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = async (visit) => {
  const { query, isSignedIn } = visit
  const attempt = query.get('attempt')
  if (attempt !== null && !isAttemptId(attempt)) return unknownAttempt
  const next = attempt === null ? localPath(query.get('next'), '/relays') : approvalPath(attempt)
  if (isSignedIn) return attempt === null ? { redirectTo: next } : showApproval(visit, attempt)
  return loginPage(visit, { next, email: '', notice: noticeOf(query) })
}

export const submit: PageHandler = async (visit) => {
  const { form, anonymousApi } = visit
  const [email, next] = [form.get('email') ?? '', localPath(form.get('next'), '/relays')]
  const body = { email, password: form.get('password') ?? '' }
  const result = await anonymousApi.POST('/api/v1/auth/login', { body })
  if (isTokenSet(result.data)) return { redirectTo: next, cookies: signInCookies(result.data) }
  return loginPage(visit, { next, email, problem: problemOf(result), status: result.response.status })
}

/** The result of the password reset that redirected here. The query may be forged, so only known names are shown. */
function noticeOf(query: URLSearchParams): Notice | undefined {
  if (query.get('done') !== 'reset') return undefined
  const unlinked = formatProviderNames(query.get('unlinked') ?? '')
  const changed = 'Your password was changed, and you were signed out of all browsers, phones and streaming software.'
  const texts = [changed, unlinked === '' ? '' : `Unlinked: ${unlinked}.`, 'Sign in with your new password.']
  return { code: 'password_reset', text: texts.filter((text) => text !== '').join(' ') }
}

/** Whether the visitor comes from streaming software that waits for an approval. */
const isForSoftware = (next: string): boolean => isApprovalPath(next) || isConnectPath(next)

interface LoginForm {
  readonly next: string
  readonly email: string
  readonly notice?: Notice | undefined
  readonly problem?: Problem
  readonly status?: number
}

async function loginPage(visit: Visit, form: LoginForm): Promise<PageResult> {
  const providers = await configuredProviders(visit)
  const title = isForSoftware(form.next) ? 'Sign in to connect your streaming software' : 'Sign in'
  const page = <Login {...form} title={title} providers={providers} legal={visit.config.legal} />
  return { name: 'login', title, status: form.status ?? 200, page }
}

interface LoginProps extends LoginForm {
  readonly title: string
  readonly providers: readonly ProviderName[]
  readonly legal: LegalPages
}

const Login = ({ title, next, email, notice, problem, providers, legal }: LoginProps) => (
  <section class="card narrow">
    <h1>{title}</h1>
    {isForSoftware(next) ? (
      <p data-next="approval">
        Streaming software is requesting access to your account. Sign in to review the request.
      </p>
    ) : null}
    <NoticeMessage notice={notice} />
    <ProblemMessage problem={problem} />
    <form class="fields" method="post" action="/login">
      <input type="hidden" name="next" value={next} />
      <EmailField value={email} problem={problem} />
      <PasswordField problem={problem} />
      <button class="wide" type="submit">
        Sign in
      </button>
    </form>
    <SignInButtons providers={providers} next={next} legal={legal} />
    {providers.length === 0 ? null : <TermsSentence legal={legal} act="If this creates an account," />}
    <p class="row apart">
      <a class="link" href={`/sign-up?next=${encodeURIComponent(next)}`}>
        Create account
      </a>
      <a class="link" href="/forgot-password">
        Forgot password?
      </a>
    </p>
  </section>
)
