/**
 * What the browser keeps for us. Nothing of it can be read by a page's script, all of it goes over TLS only, and to this
 * very host only: no cookie names a Domain (specification, "Authentication" 7).
 */
import type { Context } from 'koa'

export interface Cookie {
  readonly name: string
  readonly value: string
  readonly path: string
  readonly maxAgeSeconds: number
  readonly sameSite: 'Strict' | 'Lax'
}

/** A token set as the api answers it. */
export interface TokenSet {
  readonly cp_access_jwt: string
  readonly refresh_token: string
}

export const sessionCookie = 'svc_session'
export const refreshCookie = 'svc_refresh'
/** The refresh token goes nowhere but where it is exchanged. */
export const refreshPath = '/api/v1/auth/refresh'

/** As long as the refresh token lives: an access token that has expired says that there may be one. */
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
  if (cookies.length > 0) ctx.append('Set-Cookie', cookies.map(written))
}

function written({ name, value, path, maxAgeSeconds, sameSite }: Cookie): string {
  if (!/^[\w.~+/=-]*$/.test(value)) throw new Error(`the value of ${name} would end before its end`)
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=${sameSite}`
}

/**
 * One cookie of a request. A sibling host can add cookies for ours, by the same name and with a path that puts them in front:
 * of several that differ none counts, rather than one that signs a person in as somebody else.
 */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  return new Set(values).size === 1 ? values[0] : undefined
}

/** What goes into an Authorization header, so it is a JWT by its looks or nothing. */
export function readAccessToken(ctx: Context): string | undefined {
  const value = readCookie(ctx.get('cookie'), sessionCookie)
  return value && value.length <= 4096 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(value) ? value : undefined
}

/** There only on the way to where it is exchanged. */
export function readRefreshToken(ctx: Context): string | undefined {
  const value = readCookie(ctx.get('cookie'), refreshCookie)
  return value && /^[\w-]{16,512}$/.test(value) ? value : undefined
}

/** Whether an access token is over, or about to be, by what it says of itself; the api judges whether it is true. */
export function isExpired(accessToken: string): boolean {
  try {
    const { exp } = JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()) as { exp: number }
    return !(exp > Date.now() / 1000 + 5)
  } catch {
    return true
  }
}
