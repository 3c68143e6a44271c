/**
 * `/api/v1/*` on the site's origin, for the scripts of its pages. Takes the access token from the cookie and turns a
 * token set in a reply into cookies, so scripts never see a token (specification, "Web dashboard").
 */
import type { Context } from 'koa'
import { type Api, readJson, type Visitor } from './api.ts'
import {
  type Cookie,
  isTokenSet,
  readAccessToken,
  readRefreshToken,
  refreshPath,
  signInCookies,
  signOutCookies,
  type TokenSet,
} from './cookies.ts'
import { isPlainPath } from './plain-path.ts'
import { readRequestBody } from './request-body.ts'
import type { TokenRefresher } from './token-refresh.ts'

/** The request headers that are forwarded. Neither Authorization nor anything about the connection is among them. */
const forwardedRequestHeaders = ['content-type', 'idempotency-key', 'accept-language']
/**
 * The reply headers that are forwarded. Not WWW-Authenticate, which makes browsers ask for a password, and not
 * Content-Encoding, since the body is already decoded.
 */
const forwardedReplyHeaders = [
  'content-type',
  'cache-control',
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'allow',
  'x-request-id',
]

export interface ForwardedReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly cookies: readonly Cookie[]
}

interface Deps {
  readonly api: Api
  readonly tokenRefresher: TokenRefresher
}

/** Rejects with `ApiUnreachableError`, `BodyTooLargeError` and `IncompleteBodyError`. */
export async function forwardToApi(ctx: Context, visitor: Visitor, deps: Deps): Promise<ForwardedReply> {
  const [path = ''] = ctx.url.split('?')
  if (!isForwardedPath(path)) return errorReply(404, 'not_found', 'Not found.')
  if (!methods.includes(ctx.method)) {
    const reply = errorReply(405, 'method_not_allowed', `${ctx.method} is not allowed here.`)
    return { ...reply, headers: { ...reply.headers, allow: methods.join(', ') } }
  }
  if (path === refreshPath && ctx.method === 'POST') return refresh(ctx, visitor, deps.tokenRefresher)
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD'
  const body = isRead ? undefined : await readRequestBody(ctx.req)
  // HEAD is forwarded as GET, so that its reply has the headers of the whole body; Node's server omits the body.
  const response = await deps.api.forward(isRead ? 'GET' : ctx.method, ctx.url, {
    visitor,
    bearer: readAccessToken(ctx),
    headers: pickHeaders(forwardedRequestHeaders, (name) => ctx.get(name)),
    body: body && body.length > 0 ? body : undefined,
  })
  const reply = await toReply(response)
  return path === '/api/v1/auth/logout' && response.status < 300 ? { ...reply, cookies: signOutCookies } : reply
}

const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT']

/**
 * Routes for operators, relays and the billing provider, which a browser must not reach with a visitor's cookies, and
 * the mailbox, which the API shows to this machine only.
 */
const excludedPaths = /^\/api\/v1\/(admin|relay\/(health|slate)|billing\/webhook|mailbox)(\/|$)/i

const isForwardedPath = (path: string): boolean =>
  path.startsWith('/api/v1/') && isPlainPath(path) && !excludedPaths.test(path)

/** Exchanges the refresh token of the cookie, which browsers send to this path only. The request's body is not read. */
async function refresh(ctx: Context, visitor: Visitor, tokenRefresher: TokenRefresher): Promise<ForwardedReply> {
  const token = readRefreshToken(ctx)
  const tokens = token ? await tokenRefresher.refresh(token, visitor) : undefined
  if (tokens) return toReplyWithoutTokens(200, {}, tokens)
  const reply = errorReply(401, 'invalid_refresh_token', 'You are signed out. Sign in again.')
  return { ...reply, cookies: signOutCookies }
}

/** The API's reply as the page's script gets it. */
export async function toReply(response: Response): Promise<ForwardedReply> {
  const { status } = response
  const headers = pickHeaders(forwardedReplyHeaders, (name) => response.headers.get(name) ?? '')
  const json = await readJson(response.clone())
  if (isTokenSet(json)) return toReplyWithoutTokens(status, headers, json)
  return { status, headers, body: new Uint8Array(await response.arrayBuffer()), cookies: [] }
}

function toReplyWithoutTokens(status: number, headers: Record<string, string>, tokens: TokenSet): ForwardedReply {
  const { cp_access_jwt: _access, refresh_token: _refresh, ...rest } = tokens
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
    body: Buffer.from(JSON.stringify(rest)),
    cookies: signInCookies(tokens),
  }
}

const errorReply = (status: number, code: string, message: string): ForwardedReply => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: Buffer.from(JSON.stringify({ error: { code, message } })),
  cookies: [],
})

const pickHeaders = (names: readonly string[], read: (name: string) => string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, read(name)] as const).filter(([, value]) => value !== ''))
