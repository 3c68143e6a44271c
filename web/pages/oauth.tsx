/** OAuth authorization requests: redirecting to a provider, and the provider's callback. */

import type { ApiResult } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { isTokenSet, signInCookies } from '../cookies.ts'
import { acceptedTerms } from '../legal-links.tsx'
import { localPath } from '../local-path.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import {
  type AuthorizationRequest,
  authorizationCookie,
  clearAuthorizationCookie,
  mergeCookie,
  readAuthorizationRequest,
} from './oauth-cookies.ts'
import { problemPage } from './problem.tsx'
import { displayNames, parseProvider } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

/** Fields: `intent` (`sign_in` or `link`), `next`, and for links `scopes`. */
export const start: PageHandler = (visit) => {
  const { params, form, isSignedIn } = visit
  const provider = parseProvider(params.provider)
  if (!provider) return problemPage('not_found')
  if (form.get('intent') !== 'link')
    return startAuthorization(
      visit,
      { provider, intent: 'sign_in', next: localPath(form.get('next'), '/relays') },
      acceptedTerms(form),
    )
  if (!isSignedIn) return { redirectTo: '/login?next=/account' }
  const scopes = form.get('scopes') === 'chat' ? 'chat' : 'identity'
  return startAuthorization(visit, { provider, intent: 'link', next: '/account/security' }, { scopes })
}

type NewAuthorizationRequest = Omit<AuthorizationRequest, 'binding'>

interface OAuthOptions {
  readonly scopes?: 'identity' | 'chat'
  readonly merge_request_id?: string
  readonly terms_version?: string
}

/** @param options further fields of the API's request. */
export async function startAuthorization(
  visit: Visit,
  request: NewAuthorizationRequest,
  options: OAuthOptions = {},
): Promise<PageResult> {
  const { provider, intent } = request
  const api = intent === 'link' ? visit.api : visit.anonymousApi
  const body = { intent, ...options }
  const result = await api.POST('/api/v1/auth/oauth/{provider}/start', { params: { path: { provider } }, body })
  if (!result.data) return failedPage(result, request)
  const { authorization_url, binding } = result.data
  const cookies = [authorizationCookie({ ...request, binding })]
  return { continueTo: authorization_url, message: `Redirecting to ${displayNames[provider]}…`, cookies }
}

type CallbackResult = Reply<'post', '/auth/oauth/{provider}/callback'>

export const callback: PageHandler = async (visit) => {
  const { params, query, anonymousApi } = visit
  const provider = parseProvider(params.provider)
  if (!provider) return problemPage('not_found')
  const request = readAuthorizationRequest(visit)
  if (request?.provider !== provider || hasRepeatedParameter(query)) return expiredPage(visit.origin)
  // Ignores a code beside an error.
  if (query.has('error')) return cancelledPage(query.get('error') === 'access_denied', request)
  const [code, state, iss] = ['code', 'state', 'iss'].map((name) => query.get(name))
  if (!code || !state) return expiredPage(visit.origin)
  const body = { code, state, binding: request.binding, ...(iss ? { iss } : {}) }
  const options = { params: { path: { provider } }, body }
  const result = await anonymousApi.POST('/api/v1/auth/oauth/{provider}/callback', options)
  return result.data ? completeAuthorization(result.data, request) : failedPage(result, request)
}

/** No parameter may be repeated (RFC 6749, 3.1): the check and the use could otherwise read different values. */
const hasRepeatedParameter = (query: URLSearchParams): boolean =>
  ['error', 'code', 'state', 'iss'].some((name) => query.getAll(name).length > 1)

function completeAuthorization(result: CallbackResult, request: AuthorizationRequest): PageResult {
  const { provider, intent, next } = request
  const cookies = [clearAuthorizationCookie]
  if (result.status === 'linked')
    return { continueTo: '/account/security?done=linked', message: `${displayNames[provider]} linked`, cookies }
  if (result.status === 'signed_in') {
    if (!isTokenSet(result)) throw new Error('the API replied signed_in without tokens')
    return { continueTo: next, message: 'Signing you in…', cookies: [...signInCookies(result), ...cookies] }
  }
  const { merge_request_id: id, merge_token: token, sign_in_methods: methods } = result
  if (intent === 'merge' || token === undefined)
    return { continueTo: `/merge?proved=${provider}`, message: 'Redirecting…', cookies }
  const merge = mergeCookie({ id, token, methods, provider, next })
  return { continueTo: '/merge', message: 'Redirecting…', cookies: [merge, ...cookies] }
}

interface Link {
  readonly href: string
  readonly text: string
}

/** Where to try again. */
const retryLinks: Readonly<Record<AuthorizationRequest['intent'], (next: string) => Link>> = {
  sign_in: (next) => ({ href: `/login?next=${encodeURIComponent(next)}`, text: 'Back to sign-in' }),
  link: () => ({ href: '/account/security', text: 'Back to your account' }),
  merge: () => ({ href: '/merge', text: 'Back' }),
}

/** The API refused the request. */
function failedPage(result: ApiResult, { provider, intent, next }: NewAuthorizationRequest): PageResult {
  const problem = problemOf(result, intent === 'link' ? linkProblems(displayNames[provider]) : {})
  const title = intent === 'sign_in' ? 'Sign-in failed' : 'Linking failed'
  return outcomePage({
    name: 'oauth-failed',
    title,
    status: result.response.status,
    problem,
    link: retryLinks[intent](next),
  })
}

const linkProblems = (name: string): Readonly<Record<string, string>> => ({
  unauthorized: 'You’ve been signed out, so nothing was linked. Sign in and try again.',
  provider_already_linked: `This ${name} account is linked to another account here, or your account already has a different ${name} account. Nothing was linked.`,
})

/**
 * The provider redirected back with an error. Anyone can send a browser here with an error, so the status is never 5xx,
 * which would count as a failure of the site.
 */
function cancelledPage(isDenied: boolean, { provider, intent, next }: AuthorizationRequest): PageResult {
  const name = displayNames[provider]
  const action = intent === 'sign_in' ? 'Sign-in' : 'Linking'
  const problem = isDenied
    ? { code: 'access_denied', text: `You cancelled at ${name}. Nothing was changed.` }
    : {
        code: 'provider_error',
        text: `${name} couldn’t complete the request. Nothing was changed. Try again in a moment.`,
      }
  return outcomePage({
    name: 'oauth-cancelled',
    title: isDenied ? `${action} cancelled` : `${action} failed`,
    status: isDenied ? 200 : 400,
    problem,
    link: retryLinks[intent](next),
  })
}

const expiredPage = (origin: string) =>
  outcomePage({
    name: 'oauth-expired',
    title: 'This request has expired',
    status: 400,
    problem: {
      code: 'authorization_request_expired',
      text: `It was started more than 10 minutes ago, in another browser or at another address than ${origin}, or your browser keeps no cookies of this site. Nothing was changed.`,
    },
    link: { href: '/', text: 'Start again' },
  })

interface Outcome {
  readonly name: string
  readonly title: string
  readonly status: number
  readonly problem: Problem
  readonly link: Link
}

function outcomePage({ name, title, status, problem, link }: Outcome): PageResult {
  return {
    name,
    title,
    status,
    page: (
      <section class="card narrow">
        <h1>{title}</h1>
        <ProblemMessage problem={problem} />
        <a class="button second wide" href={link.href}>
          {link.text}
        </a>
      </section>
    ),
  }
}
