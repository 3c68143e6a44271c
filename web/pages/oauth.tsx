/** Leaving for a provider, and coming back from one. */
import { type ApiResponse, readApiError } from '../api.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import {
  type AuthorizationRequest,
  authorizationCookie,
  clearAuthorizationCookie,
  type MergeRequest,
  mergeCookie,
  readAuthorizationRequest,
} from './oauth-cookies.ts'
import { problemPage } from './problem.tsx'
import { displayNames, parseProvider } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

/** Fields: `intent` (`sign_in` or `link`), `next`, and for links `scopes`. */
export const start: PageRoute = {
  method: 'POST',
  path: '/oauth/:provider/start',
  caller: 'anyone',
  handle: (visit) => {
    const { params, form, isSignedIn } = visit
    const provider = parseProvider(params.provider)
    if (!provider) return problemPage('not_found')
    if (form.get('intent') !== 'link')
      return startAuthorization(visit, { provider, intent: 'sign_in', next: localPath(form.get('next'), '/relays') })
    if (!isSignedIn) return { redirectTo: '/login?next=/account' }
    const scopes = form.get('scopes') === 'chat' ? 'chat' : 'identity'
    return startAuthorization(visit, { provider, intent: 'link', next: '/account' }, { scopes })
  },
}

/** @param more what the api has to know besides. */
export async function startAuthorization(
  visit: Visit,
  request: Omit<AuthorizationRequest, 'binding'>,
  more: object = {},
): Promise<PageResult> {
  type Started = { readonly authorization_url: string; readonly binding: string }
  const ask = request.intent === 'link' ? visit.callApi<Started> : visit.callApiAnonymously<Started>
  const { provider, intent } = request
  const answer = await ask('POST', `/api/v1/auth/oauth/${provider}/start`, { intent, ...more })
  if (answer.status !== 201) return refused(answer, request)
  const { authorization_url, binding } = answer.body
  const cookies = [authorizationCookie({ ...request, binding })]
  return { continueTo: authorization_url, message: `Going to ${displayNames[provider]} …`, cookies }
}

/** What the api may answer to somebody who came back. */
type Arrived =
  | { readonly status: 'signed_in' }
  | { readonly status: 'linked' }
  | {
      readonly status: 'merge_required'
      readonly merge_request_id: string
      /** Only in the answer that begins a merge. */
      readonly merge_token?: string
      readonly sign_in_methods: MergeRequest['methods']
    }

export const callback: PageRoute = {
  method: 'GET',
  path: '/oauth/:provider/callback',
  caller: 'anyone',
  // A provider sends the browser here. Who is signed in meanwhile is not known, and stays so unless this signs in.
  allowsCrossSiteEntry: true,
  handle: async (visit) => {
    const { params, query, callApiAnonymously } = visit
    const provider = parseProvider(params.provider)
    if (!provider) return problemPage('not_found')
    const carried = readAuthorizationRequest(visit)
    const request = carried?.provider === provider ? carried : undefined
    if (!request || isRepeated(query)) return begunElsewhere
    // Whatever stands beside an error is no answer to go on with.
    if (query.has('error')) return notCompleted(query.get('error') === 'access_denied', request)
    const [code, state, iss] = ['code', 'state', 'iss'].map((name) => query.get(name))
    if (!code || !state) return begunElsewhere
    const body = { code, state, binding: request.binding, ...(iss ? { iss } : {}) }
    const answer = await callApiAnonymously<Arrived>('POST', `/api/v1/auth/oauth/${provider}/callback`, body)
    return answer.status === 200 ? arrived(answer, request) : refused(answer, request)
  },
}

/** No parameter may come twice (RFC 6749, 3.1): of two, one would be checked and the other one used. */
const isRepeated = (query: URLSearchParams): boolean =>
  ['error', 'code', 'state', 'iss'].some((name) => query.getAll(name).length > 1)

function arrived({ body }: ApiResponse<Arrived>, { provider, intent, next }: AuthorizationRequest): PageResult {
  const name = displayNames[provider]
  if (body.status === 'linked')
    return { continueTo: '/account?done=linked', message: `${name} is linked.`, cookies: [clearAuthorizationCookie] }
  if (body.status === 'signed_in') {
    if (!isTokenSet(body)) throw new Error('a sign-in came without tokens')
    return {
      continueTo: next,
      message: 'Signing you in …',
      cookies: [...signInCookies(body), clearAuthorizationCookie],
    }
  }
  const { merge_request_id: id, merge_token: token, sign_in_methods: methods } = body
  if (intent === 'merge' || token === undefined)
    return { continueTo: `/merge?proved=${provider}`, message: 'Going on …', cookies: [clearAuthorizationCookie] }
  const cookies = [mergeCookie({ id, token, methods, provider, next }), clearAuthorizationCookie]
  return { continueTo: '/merge', message: 'Going on …', cookies }
}

/** Where somebody goes to try again, by what they were about to do. */
const ways: Readonly<Record<AuthorizationRequest['intent'], (next: string) => { href: string; says: string }>> = {
  sign_in: (next) => ({ href: `/login?next=${encodeURIComponent(next)}`, says: 'Back to the sign-in' }),
  link: () => ({ href: '/account', says: 'Back to your account' }),
  merge: () => ({ href: '/merge', says: 'Back to linking' }),
}

/** The api's sentence, and the way on. */
function refused(answer: ApiResponse, { provider, intent, next }: Omit<AuthorizationRequest, 'binding'>): PageResult {
  const { code } = readApiError(answer)
  const says = (intent === 'link' && linkRefusals[code]?.(displayNames[provider])) || problemOf(answer).text
  return trouble({ title: 'That did not work', status: answer.status, says, way: ways[intent](next) })
}

const linkRefusals: Readonly<Record<string, (name: string) => string>> = {
  unauthorized: () => 'You were signed out meanwhile, so nothing was linked. Sign in and link again.',
  provider_already_linked: (name) =>
    `Nothing was linked: this ${name} account is linked to another account here, or yours has another one of ${name} already.`,
}

/** Any link can lead a browser here with an error, so none is a failure of ours or of the provider's, as a 5xx would be. */
function notCompleted(isDenial: boolean, { provider, intent, next }: AuthorizationRequest): PageResult {
  const name = displayNames[provider]
  const says = isDenial
    ? `You did not agree at ${name}, so nothing was done.`
    : `${name} could not complete it, so nothing was done. Try again in a moment.`
  return trouble({ title: 'Nothing was done', status: isDenial ? 200 : 400, says, way: ways[intent](next) })
}

const begunElsewhere = trouble({
  title: 'Start again in this browser',
  status: 400,
  says: 'This did not begin in this browser, or more than 10 minutes ago. Nothing was done: start it here once more.',
  way: { href: '/', says: 'Start again' },
})

interface Trouble {
  readonly title: string
  readonly status: number
  readonly says: string
  readonly way: { readonly href: string; readonly says: string }
}

function trouble({ title, status, says, way }: Trouble): PageResult {
  return {
    title,
    status,
    page: (
      <section class="card narrow">
        <h1>{title}</h1>
        <p role="alert">{says}</p>
        <a class="button second wide" href={way.href}>
          {way.says}
        </a>
      </section>
    ),
  }
}
