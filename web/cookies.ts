/**
 * The site's cookies. All are HttpOnly and Secure, and without a Domain, so that browsers send them to this host only
 * (specification, "Authentication" 7).
 */
import type { Context } from 'koa'

export interface Cookie {
  readonly name: string
  readonly value: string
  readonly path: string
  readonly maxAgeSeconds: number
  readonly sameSite: 'Strict' | 'Lax'
}

/** The tokens in a reply of the API. */
export interface TokenSet {
  readonly cp_access_jwt: string
  readonly refresh_token: string
}

export const sessionCookie = 'svc_session'
export const refreshCookie = 'svc_refresh'
/** Browsers send the refresh token to this path only. */
export const refreshPath = '/api/v1/auth/refresh'

/**
 * The lifetime of a refresh token. The access token's cookie lives as long: an expired one shows that a refresh may
 * work.
 */
const signInSeconds = 30 * 86_400

export const signInCookies = (tokens: TokenSet): readonly Cookie[] => [
  { name: sessionCookie, value: tokens.cp_access_jwt, path: '/', maxAgeSeconds: signInSeconds, sameSite: 'Strict' },
  {
    name: refreshCookie,
    value: tokens.refresh_token,
    path: refreshPath,
    maxAgeSeconds: signInSeconds,
    sameSite: 'Strict',
  },
]

export const signOutCookies: readonly Cookie[] = [
  { name: sessionCookie, value: '', path: '/', maxAgeSeconds: 0, sameSite: 'Strict' },
  { name: refreshCookie, value: '', path: refreshPath, maxAgeSeconds: 0, sameSite: 'Strict' },
]

export const isTokenSet = (body: unknown): body is TokenSet =>
  typeof body === 'object' && body !== null && 'cp_access_jwt' in body && 'refresh_token' in body

export const setCookies = (ctx: Context, cookies: readonly Cookie[]): void => {
  if (cookies.length > 0) ctx.append('Set-Cookie', cookies.map(serialize))
}

function serialize({ name, value, path, maxAgeSeconds, sameSite }: Cookie): string {
  if (!/^[\w.~+/=-]*$/.test(value)) throw new Error(`the value of the cookie ${name} has characters that need encoding`)
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=${sameSite}`
}

/**
 * One cookie of a Cookie header. A sibling host can set cookies of the same name for this host, and browsers may send
 * them first. When several have different values, none is used, so that an attacker cannot sign a visitor in to another
 * account.
 */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  return new Set(values).size === 1 ? values[0] : undefined
}

/** The access token of the request, if it has the form of a JWT: it is sent in an Authorization header. */
export function readAccessToken(ctx: Context): string | undefined {
  const value = readCookie(ctx.get('cookie'), sessionCookie)
  return value && value.length <= 4096 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(value) ? value : undefined
}

/** The refresh token of a request to {@link refreshPath} or below. */
export function readRefreshToken(ctx: Context): string | undefined {
  const value = readCookie(ctx.get('cookie'), refreshCookie)
  return value && /^[\w-]{16,512}$/.test(value) ? value : undefined
}

/** Whether an access token expires within 5 s, by its unverified `exp`. Only the API verifies tokens. */
export function isExpired(accessToken: string): boolean {
  try {
    const { exp } = JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()) as { exp: number }
    return !(exp > Date.now() / 1000 + 5)
  } catch {
    return true
  }
}
