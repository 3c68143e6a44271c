/** A provider's address is an account's already: its owner proves to be it, and the two become one. */
import { readApiError } from '../api.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { PasswordField, ProblemNote } from './fields.tsx'
import { startAuthorization } from './oauth.tsx'
import { clearMergeCookie, type MergeRequest, readMergeRequest } from './oauth-cookies.ts'
import { problemPage } from './problem.tsx'
import { displayNames, type ProviderName, parseProvider } from './providers.tsx'
import { type Problem, problemOf } from './refusal-text.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/merge',
  caller: 'anyone',
  handle: (visit) => {
    const merge = readMergeRequest(visit)
    if (!merge) return startAgain
    const proved = parseProvider(visit.query.get('proved') ?? undefined)
    return proved && merge.methods.includes(proved) ? provedPage(merge, proved) : provePage(merge)
  },
}

/** With the password, or with nothing after a round request through a provider that the account had before. */
export const submit: PageRoute = {
  method: 'POST',
  path: '/merge',
  caller: 'anyone',
  handle: async (visit) => {
    const merge = readMergeRequest(visit)
    if (!merge) return startAgain
    const password = visit.form.get('password')
    const body = { merge_token: merge.token, ...(password === null ? {} : { password }) }
    const answer = await visit.callApiAnonymously('POST', `/api/v1/auth/merge/${merge.id}/confirm`, body)
    if (isTokenSet(answer.body))
      return { redirectTo: merge.next, cookies: [...signInCookies(answer.body), clearMergeCookie] }
    if (over.has(readApiError(answer).code)) return startAgain
    return provePage(merge, problemOf(answer), answer.status)
  },
}

const over = new Set(['merge_expired', 'token_invalid', 'not_found'])

export const leave: PageRoute = {
  method: 'POST',
  path: '/merge/oauth/:provider',
  caller: 'anyone',
  handle: (visit: Visit) => {
    const provider = parseProvider(visit.params.provider)
    if (!provider) return problemPage('not_found')
    const merge = readMergeRequest(visit)
    if (!merge) return startAgain
    return startAuthorization(visit, { provider, intent: 'merge', next: '/merge' }, { merge_request_id: merge.id })
  },
}

function provePage(merge: MergeRequest, problem?: Problem, status = 200): PageResult {
  const name = displayNames[merge.provider]
  const others = merge.methods.filter((method) => method !== 'password')
  return {
    title: `Link ${name} to your account`,
    status,
    page: (
      <section class="card narrow">
        <h1>Is this your account?</h1>
        <p>
          There is an account here with the address of your {name} account already. Prove that it is yours, then {name}{' '}
          is linked to it and you are signed in.
        </p>
        <ProblemNote problem={problem} />
        {merge.methods.includes('password') ? <ByPassword name={name} problem={problem} /> : null}
        {merge.methods.includes('password') && others.length > 0 ? <p class="or">or</p> : null}
        {others.map((method) => (
          <form key={method} method="post" action={`/merge/oauth/${method}`}>
            <button class="second wide" type="submit">
              Prove it with {displayNames[method]}
            </button>
          </form>
        ))}
        <p class="muted">Lost the password? Cancel, and choose another one under “Forgot your password?”.</p>
        <Cancel next={merge.next} />
      </section>
    ),
  }
}

const ByPassword = ({ name, problem }: { readonly name: string; readonly problem: Problem | undefined }) => (
  <form class="fields" method="post" action="/merge">
    <PasswordField problem={problem} />
    <button class="wide" type="submit">
      Prove it and link {name}
    </button>
  </form>
)

/** Coming back from a provider links nothing by itself. */
const provedPage = (merge: MergeRequest, proved: ProviderName): PageResult => ({
  title: `Link ${displayNames[merge.provider]} to your account`,
  page: (
    <section class="card narrow">
      <h1>Link {displayNames[merge.provider]} to this account?</h1>
      <p>
        You have proved with {displayNames[proved]} that the account is yours. From now on you can sign in to it with{' '}
        {displayNames[merge.provider]} too.
      </p>
      <form class="fields" method="post" action="/merge">
        <button class="wide" type="submit">
          Link {displayNames[merge.provider]}
        </button>
      </form>
      <Cancel next={merge.next} />
    </section>
  ),
})

const Cancel = ({ next }: { readonly next: string }) => (
  <p>
    <a class="link" href={`/login?next=${encodeURIComponent(next)}`}>
      Cancel
    </a>
  </p>
)

const startAgain: PageResult = {
  title: 'Start again',
  status: 410,
  cookies: [clearMergeCookie],
  page: (
    <section class="card narrow">
      <h1>Start again</h1>
      <p role="alert">Linking was not completed within 10 minutes, or not in this browser. Nothing was linked.</p>
      <a class="button second wide" href="/login">
        Back to the sign-in
      </a>
    </section>
  ),
}
