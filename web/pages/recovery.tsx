/** A forgotten password: asking for a link, and choosing another password with it. */
import { ApiUnavailableError, readApiError } from '../api.ts'
import { signOutCookies } from '../cookies.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { EmailField, NewPasswordField, ProblemNote } from './fields.tsx'
import { displayNames, type ProviderName, parseProvider } from './providers.tsx'
import { type Problem, problemOf } from './refusal-text.ts'

export const showForgot: PageRoute = {
  method: 'GET',
  path: '/forgot-password',
  caller: 'anyone',
  handle: () => forgotPage({ email: '' }),
}

export const submitForgot: PageRoute = {
  method: 'POST',
  path: '/forgot-password',
  caller: 'anyone',
  handle: async ({ form, callApiAnonymously }) => {
    const email = form.get('email') ?? ''
    const answer = await callApiAnonymously('POST', '/api/v1/auth/password/forgot', { email })
    if (answer.status === 202) return onItsWay(email)
    return forgotPage({ email, problem: problemOf(answer), status: answer.status })
  },
}

interface Forgot {
  readonly email: string
  readonly problem?: Problem
  readonly status?: number
}

const forgotPage = ({ email, problem, status = 200 }: Forgot): PageResult => ({
  title: 'Forgotten password',
  status,
  page: (
    <section class="card narrow">
      <h1>Forgot your password?</h1>
      <p>Type the address of your account. We send a link to it, with which you choose another password.</p>
      <ProblemNote problem={problem} />
      <form class="fields" method="post" action="/forgot-password">
        <EmailField value={email} problem={problem} />
        <button class="wide" type="submit">
          Send the link
        </button>
      </form>
      <BackToLogin />
    </section>
  ),
})

/** The same for every address. */
const onItsWay = (email: string): PageResult => ({
  title: 'Look into your mail',
  page: (
    <section class="card narrow">
      <h1>Look into your mail</h1>
      <p role="status">
        If <strong>{email}</strong> has an account here, a link is on its way to it. It works once, within 30 minutes.
      </p>
      <p class="muted">Nothing there after a few minutes? Look among the spam, and check the address.</p>
      <BackToLogin />
    </section>
  ),
})

export const showReset: PageRoute = {
  method: 'GET',
  path: '/reset-password',
  caller: 'anyone',
  // From a mail: it needs no sign-in, and looking at it uses nothing up.
  allowsCrossSiteEntry: true,
  handle: async ({ query, callApiAnonymously }) =>
    resetPage(await askForPreview(callApiAnonymously, query.get('token') ?? '')),
}

export const submitReset: PageRoute = {
  method: 'POST',
  path: '/reset-password',
  caller: 'anyone',
  allowsCrossSiteEntry: true,
  handle: async ({ form, callApiAnonymously }) => {
    const [token, password] = [form.get('token') ?? '', form.get('password') ?? '']
    // Before the link is used up, which ends the only way to ask what it unlinks.
    const preview = await askForPreview(callApiAnonymously, token)
    if (!preview) return linkOver
    const answer = await callApiAnonymously('POST', '/api/v1/auth/password/reset', { token, password })
    if (answer.status === 204) return { redirectTo: afterReset(preview), cookies: signOutCookies }
    if (readApiError(answer).code === 'token_invalid') return linkOver
    return resetPage({ ...preview, problem: problemOf(answer), status: answer.status })
  },
}

interface Preview {
  readonly token: string
  readonly linked: readonly { readonly provider: ProviderName; readonly stays: boolean }[]
  readonly replacesStreamToken: boolean
}

/** What a link's reset changes besides the password; nothing when the link does not work. */
async function askForPreview(ask: Visit['callApiAnonymously'], token: string): Promise<Preview | undefined> {
  type Body = {
    readonly linked_accounts: readonly { readonly provider: string; readonly stays: boolean }[]
    readonly replaces_stream_token: boolean
  }
  if (token === '') return undefined
  const answer = await ask<Body>('POST', '/api/v1/auth/password/reset/preview', { token })
  if (readApiError(answer).code === 'token_invalid') return undefined
  if (answer.status !== 200) throw new ApiUnavailableError(`the api answered ${answer.status} for a preview of a reset`)
  const linked = answer.body.linked_accounts.flatMap(({ provider: name, stays }) => {
    const provider = parseProvider(name)
    return provider ? [{ provider, stays }] : []
  })
  return { token, linked, replacesStreamToken: answer.body.replaces_stream_token }
}

/** The sign-in page, which names what was unlinked. */
function afterReset({ linked }: Preview): string {
  const unlinked = linked.flatMap(({ provider, stays }) => (stays ? [] : [provider]))
  return `/login?done=reset${unlinked.length > 0 ? `&unlinked=${unlinked.join(',')}` : ''}`
}

interface Reset extends Preview {
  readonly problem?: Problem
  readonly status?: number
}

const resetPage = (reset: Reset | undefined): PageResult =>
  reset === undefined
    ? linkOver
    : {
        title: 'Choose another password',
        status: reset.status ?? 200,
        page: (
          <section class="card narrow">
            <h1>Choose another password</h1>
            <p>
              Afterwards you are signed out everywhere and sign in again: in browsers, on phones and in your streaming
              software.
            </p>
            <RelayNote {...reset} />
            <LinkedNote {...reset} />
            <ProblemNote problem={reset.problem} />
            <form class="fields" method="post" action="/reset-password">
              <input type="hidden" name="token" value={reset.token} />
              <NewPasswordField problem={reset.problem} />
              <button class="wide" type="submit">
                Set the password
              </button>
            </form>
          </section>
        ),
      }

const RelayNote = ({ replacesStreamToken }: Preview) =>
  replacesStreamToken ? (
    <p>
      Relays that are running end, and you get new stream addresses: until now it was not certain that this account is
      only yours.
    </p>
  ) : (
    <p>A relay on the air goes on.</p>
  )

const LinkedNote = ({ linked }: Preview) =>
  linked.length === 0 ? null : (
    <>
      <p>Accounts that are linked:</p>
      <ul>
        {linked.map(({ provider, stays }) => (
          <li key={provider}>
            {stays
              ? `${displayNames[provider]} stays linked: it has your email address.`
              : `${displayNames[provider]} is unlinked: it has not confirmed your email address. Link it again when you have signed in.`}
          </li>
        ))}
      </ul>
    </>
  )

const linkOver: PageResult = {
  title: 'This link does not work',
  status: 400,
  page: (
    <section class="card narrow">
      <h1>This link does not work any more</h1>
      <p role="alert">It works once, within 30 minutes. If you copied it, look whether all of it is there.</p>
      <a class="button second wide" href="/forgot-password">
        Ask for another link
      </a>
    </section>
  ),
}

function BackToLogin() {
  return (
    <p>
      <a class="link" href="/login">
        Back to the sign-in
      </a>
    </p>
  )
}
