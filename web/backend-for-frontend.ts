/**
 * `/api/v1/*` on the site's origin, for the scripts of our pages. The access token comes from the cookie, and never reaches
 * a script: a token set in a reply becomes cookies (specification, "Web dashboard").
 */
import type { Context } from 'koa'
import type { Api, ApiAnswer, Visitor } from './api.ts'
import {
  type Cookie,
  isTokenSet,
  readCookie,
  refreshCookie,
  refreshPath,
  sessionCookie,
  signedIn,
  signedOut,
} from './cookies.ts'
import type { Refreshing } from './refreshing.ts'
import { readRequestBody } from './request-body.ts'

/** What a page's request may bring to the api. Its Authorization is not among them, nor anything about the connection. */
const requestHeaders = ['content-type', 'idempotency-key', 'accept-language']
/** What the api's answer may bring to a page. */
const replyHeaders = [
  'content-type',
  'cache-control',
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'www-authenticate',
  'allow',
  'x-request-id',
]

export interface Forwarded {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly cookies: readonly Cookie[]
}

interface Needs {
  readonly api: Api
  readonly refreshing: Refreshing
}

/** Throws {@link ApiAway} and {@link BodyTooLarge}. */
export async function forward(ctx: Context, visitor: Visitor, { api, refreshing }: Needs): Promise<Forwarded> {
  const [path = ''] = ctx.req.url?.split('?') ?? []
  if (!isForPages(path)) return refused(404, 'not_found', 'There is no such thing here.')
  if (path === refreshPath && ctx.method === 'POST') return refresh(ctx, visitor, refreshing)
  const body = await readRequestBody(ctx.req)
  const answer = await api.ask(ctx.method, path + ctx.search, {
    visitor,
    bearer: readCookie(ctx.get('cookie'), sessionCookie),
    headers: present(requestHeaders, (name) => ctx.get(name)),
    body: body.length > 0 ? body : undefined,
  })
  if (path === '/api/v1/auth/logout' && answer.status < 300) return { ...presented(answer), cookies: signedOut }
  return presented(answer)
}

/** Plain paths below the api only: none that another server may read as a different one, and nothing of the operators'. */
const isForPages = (path: string): boolean =>
  path.startsWith('/api/v1/') &&
  /^[\w/.~-]+$/.test(path) &&
  !/\/\.{0,2}(\/|$)/.test(path.slice(1)) &&
  !/^\/api\/v1\/admin(\/|$)/i.test(path)

/** The refresh token comes from its cookie, which goes to this path only. */
async function refresh(ctx: Context, visitor: Visitor, refreshing: Refreshing): Promise<Forwarded> {
  const token = readCookie(ctx.get('cookie'), refreshCookie)
  const tokens = token ? await refreshing.refresh(token, visitor) : undefined
  if (!tokens)
    return { ...refused(401, 'invalid_refresh_token', 'You are signed out: sign in again.'), cookies: signedOut }
  return withoutTokens(200, {}, tokens)
}

const presented = (answer: ApiAnswer): Forwarded => {
  const headers = present(replyHeaders, (name) => answer.headers.get(name) ?? '')
  if (isTokenSet(answer.body)) return withoutTokens(answer.status, headers, answer.body)
  return { status: answer.status, headers, body: answer.bytes, cookies: [] }
}

function withoutTokens(
  status: number,
  headers: Record<string, string>,
  body: Parameters<typeof signedIn>[0],
): Forwarded {
  const { cp_access_jwt: _access, refresh_token: _refresh, ...rest } = body
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
    body: Buffer.from(JSON.stringify(rest)),
    cookies: signedIn(body),
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
