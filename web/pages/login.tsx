/** Signing in with an email address and a password. */
import { refusalOf } from '../api.ts'
import { isTokenSet, signedIn } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageAnswer, PageRoute } from '../page-route.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/login',
  caller: 'anyone',
  handle: ({ query, isSignedIn }) => {
    const next = localPath(query.get('next'), '/relays')
    return isSignedIn ? { goTo: next } : loginPage({ next, email: '' })
  },
}

export const submit: PageRoute = {
  method: 'POST',
  path: '/login',
  caller: 'anyone',
  handle: async ({ form, askAsNobody }) => {
    const [email, next] = [form.get('email') ?? '', localPath(form.get('next'), '/relays')]
    const answer = await askAsNobody('POST', '/api/v1/auth/login', { email, password: form.get('password') ?? '' })
    if (isTokenSet(answer.body)) return { goTo: next, cookies: signedIn(answer.body) }
    return loginPage({ next, email, status: answer.status, problem: refusalOf(answer).message })
  },
}

interface Shown {
  readonly next: string
  readonly email: string
  readonly problem?: string
  readonly status?: number
}

const loginPage = ({ next, email, problem, status = 200 }: Shown): PageAnswer => ({
  title: 'Sign in',
  status,
  page: (
    <form class="card narrow" method="post" action="/login">
      <h1>Sign in</h1>
      {problem ? (
        <p class="problem" role="alert">
          {problem}
        </p>
      ) : null}
      <input type="hidden" name="next" value={next} />
      <label for="email">Email address</label>
      <input id="email" name="email" type="email" autocomplete="username" required value={email} />
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required />
      <button type="submit">Sign in</button>
    </form>
  ),
})
