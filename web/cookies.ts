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
const signedInSeconds = 30 * 86_400

export const signedIn = (tokens: TokenSet): readonly Cookie[] => [
  { name: sessionCookie, value: tokens.cp_access_jwt, path: '/', maxAgeSeconds: signedInSeconds, sameSite: 'Strict' },
  {
    name: refreshCookie,
    value: tokens.refresh_token,
    path: refreshPath,
    maxAgeSeconds: signedInSeconds,
    sameSite: 'Strict',
  },
]

export const signedOut: readonly Cookie[] = [
  { name: sessionCookie, value: '', path: '/', maxAgeSeconds: 0, sameSite: 'Strict' },
  { name: refreshCookie, value: '', path: refreshPath, maxAgeSeconds: 0, sameSite: 'Strict' },
]

export const isTokenSet = (body: unknown): body is TokenSet =>
  typeof body === 'object' && body !== null && 'cp_access_jwt' in body && 'refresh_token' in body

export const setCookies = (ctx: Context, cookies: readonly Cookie[]): void => {
  if (cookies.length > 0) ctx.append('Set-Cookie', cookies.map(written))
}

const written = ({ name, value, path, maxAgeSeconds, sameSite }: Cookie): string =>
  `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=${sameSite}`

/** One cookie of a request; of several with the same name the first, which is the one with the longest path. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const [key = '', ...value] = part.split('=')
    if (key.trim() === name) return value.join('=').trim()
  }
  return undefined
}

/** Whether an access token is over, or about to be, by what it says of itself; the api judges whether it is true. */
export function isOver(accessToken: string): boolean {
  try {
    const { exp } = JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()) as { exp: number }
    return !(exp > Date.now() / 1000 + 5)
  } catch {
    return true
  }
}
