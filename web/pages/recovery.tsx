/** A forgotten password: asking for a link, and choosing another password with it. */
import { refusalOf } from '../api.ts'
import { signedOut } from '../cookies.ts'
import type { PageAnswer, PageRoute } from '../page-route.ts'
import { EmailField, NewPasswordField, ProblemNote } from './fields.tsx'
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
  handle: async ({ form, askAsNobody }) => {
    const email = form.get('email') ?? ''
    const answer = await askAsNobody('POST', '/api/v1/auth/password/forgot', { email })
    if (answer.status === 202) return onItsWay(email)
    return forgotPage({ email, problem: problemOf(answer), status: answer.status })
  },
}

interface Forgot {
  readonly email: string
  readonly problem?: Problem
  readonly status?: number
}

const forgotPage = ({ email, problem, status = 200 }: Forgot): PageAnswer => ({
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
const onItsWay = (email: string): PageAnswer => ({
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
  arrival: true,
  handle: ({ query }) => resetPage({ token: query.get('token') ?? '' }),
}

export const submitReset: PageRoute = {
  method: 'POST',
  path: '/reset-password',
  caller: 'anyone',
  arrival: true,
  handle: async ({ form, askAsNobody }) => {
    const [token, password] = [form.get('token') ?? '', form.get('password') ?? '']
    const answer = await askAsNobody('POST', '/api/v1/auth/password/reset', { token, password })
    if (answer.status === 204) return { goTo: '/login?done=reset', cookies: signedOut }
    if (refusalOf(answer).code === 'token_invalid') return resetPage({ token: '' })
    return resetPage({ token, problem: problemOf(answer), status: answer.status })
  },
}

interface Reset {
  /** Empty when there is none that works. */
  readonly token: string
  readonly problem?: Problem
  readonly status?: number
}

const resetPage = ({ token, problem, status = 200 }: Reset): PageAnswer =>
  token === ''
    ? linkOver
    : {
        title: 'Choose another password',
        status,
        page: (
          <section class="card narrow">
            <h1>Choose another password</h1>
            <p>
              Afterwards you are signed out everywhere and sign in again: in browsers, on phones and in your streaming
              software. A relay on the air goes on.
            </p>
            <p class="muted">
              If the address of your account was never confirmed before, it is now: sign-ins through Twitch, Google or
              Discord that were linked until then are taken off, and you get new stream addresses.
            </p>
            <ProblemNote problem={problem} />
            <form class="fields" method="post" action="/reset-password">
              <input type="hidden" name="token" value={token} />
              <NewPasswordField problem={problem} />
              <button class="wide" type="submit">
                Set the password
              </button>
            </form>
          </section>
        ),
      }

const linkOver: PageAnswer = {
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
