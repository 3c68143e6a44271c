/**
 * `/api/v1/*` on the site's origin, for the scripts of our pages. The access token comes from the cookie, and never reaches
 * a script: a token set in a reply becomes cookies (specification, "Web dashboard").
 */
import type { Context } from 'koa'
import type { Api, ApiResponse, Visitor } from './api.ts'
import {
  type Cookie,
  isTokenSet,
  readAccessToken,
  readRefreshToken,
  refreshPath,
  signInCookies,
  signOutCookies,
} from './cookies.ts'
import { isPlainPath } from './plain-path.ts'
import { readRequestBody } from './request-body.ts'
import type { TokenRefresher } from './token-refresh.ts'

/** What a page's request may bring to the api. Its Authorization is not among them, nor anything about the connection. */
const requestHeaders = ['content-type', 'idempotency-key', 'accept-language']
/**
 * What the api's answer may bring to a page. Not how to authenticate: a browser would ask the person for it. Not how it is
 * encoded: it has been decoded.
 */
const replyHeaders = [
  'content-type',
  'cache-control',
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'allow',
  'x-request-id',
]

export interface Forwarded {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly cookies: readonly Cookie[]
}

interface Deps {
  readonly api: Api
  readonly tokenRefresher: TokenRefresher
}

/** Rejects with `ApiUnavailableError`, `BodyTooLargeError` and `RequestAbortedError`. */
export async function forward(ctx: Context, visitor: Visitor, { api, tokenRefresher }: Deps): Promise<Forwarded> {
  const [path = ''] = ctx.url.split('?')
  if (!isForPages(path)) return refused(404, 'not_found', 'There is no such thing here.')
  if (!methods.includes(ctx.method)) {
    const refusal = refused(405, 'method_not_allowed', 'Nothing here is asked that way.')
    return { ...refusal, headers: { ...refusal.headers, allow: methods.join(', ') } }
  }
  if (path === refreshPath && ctx.method === 'POST') return refresh(ctx, visitor, tokenRefresher)
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD'
  const body = isRead ? undefined : await readRequestBody(ctx.req)
  // The head of an answer is that of the whole answer, which our own server then leaves out.
  const answer = await api.call(isRead ? 'GET' : ctx.method, ctx.url, {
    visitor,
    bearer: readAccessToken(ctx),
    headers: present(requestHeaders, (name) => ctx.get(name)),
    body: body && body.length > 0 ? body : undefined,
  })
  if (path === '/api/v1/auth/logout' && answer.status < 300) return { ...presented(answer), cookies: signOutCookies }
  return presented(answer)
}

const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT']

/** What operators, relays and the billing provider ask is nothing for a browser with somebody's cookies. */
const notForPages = /^\/api\/v1\/(admin|relay\/health|billing\/webhook)(\/|$)/i

const isForPages = (path: string): boolean =>
  path.startsWith('/api/v1/') && isPlainPath(path) && !notForPages.test(path)

/** The refresh token comes from its cookie, which goes to this path only; what a script sends is not even read. */
async function refresh(ctx: Context, visitor: Visitor, tokenRefresher: TokenRefresher): Promise<Forwarded> {
  const token = readRefreshToken(ctx)
  const tokens = token ? await tokenRefresher.refresh(token, visitor) : undefined
  if (!tokens)
    return { ...refused(401, 'invalid_refresh_token', 'You are signed out: sign in again.'), cookies: signOutCookies }
  return withoutTokens(200, {}, tokens)
}

const presented = (answer: ApiResponse): Forwarded => {
  const headers = present(replyHeaders, (name) => answer.headers.get(name) ?? '')
  if (isTokenSet(answer.body)) return withoutTokens(answer.status, headers, answer.body)
  return { status: answer.status, headers, body: answer.bytes, cookies: [] }
}

function withoutTokens(
  status: number,
  headers: Record<string, string>,
  body: Parameters<typeof signInCookies>[0],
): Forwarded {
  const { cp_access_jwt: _access, refresh_token: _refresh, ...rest } = body
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
    body: Buffer.from(JSON.stringify(rest)),
    cookies: signInCookies(body),
  }
}

const refused = (status: number, code: string, message: string): Forwarded => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: Buffer.from(JSON.stringify({ error: { code, message } })),
  cookies: [],
})

const present = (names: readonly string[], read: (name: string) => string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, read(name)] as const).filter(([, value]) => value !== ''))
