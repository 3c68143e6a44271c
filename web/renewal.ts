/**
 * Renews a sign-in while a page is opened. Browsers send the refresh token's cookie to one path only, so the browser is
 * redirected there and back with 307, which keeps method and form.
 */
import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import {
  type Cookie,
  readAccessToken,
  readCookie,
  readRefreshToken,
  refreshPath,
  sessionCookie,
  setCookies,
  signInCookies,
  signOutCookies,
} from './cookies.ts'
import { localPath } from './local-path.ts'
import type { TokenRefresher } from './token-refresh.ts'
import { visitorOf } from './visit.ts'

export const renewalPath = `${refreshPath}/return`

/**
 * Holds a hash of the access token that the last renewal ended with. Prevents redirect loops; worthless to an attacker.
 * Lax, so that it is also sent after a link of another site by browsers without Fetch Metadata, which send no Strict
 * cookies then.
 */
const renewedCookie = 'svc_renewed'
/** Longer than the redirect takes, much shorter than an access token lives. */
const renewedSeconds = 10

export function redirectToRenewal(ctx: Context): void {
  redirect(ctx, `${renewalPath}?to=${encodeURIComponent(ctx.url)}`)
}

/** Whether a renewal a moment ago ended with the access token of this request, so another one would change nothing. */
export const isRecentlyRenewed = (ctx: Context): boolean =>
  readCookie(ctx.get('cookie'), renewedCookie) === hashOf(readAccessToken(ctx))

/**
 * Exchanges the refresh token and redirects to the page in `to`. Without a refresh token the cookies stay unchanged:
 * after a cross-site navigation the browser does not send it. Rejects when the API fails.
 *
 * A browser that keeps no cookies would be sent back and forth for ever. One that sent none comes here a second time,
 * before it goes on to the page.
 * @returns where to try again, when the browser keeps no cookies.
 */
export async function renewSignIn(
  ctx: Context,
  { tokenRefresher }: { readonly tokenRefresher: TokenRefresher },
): Promise<string | undefined> {
  const refreshToken = readRefreshToken(ctx)
  const query = new URLSearchParams(ctx.search)
  const to = localPath(query.get('to'), '/')
  const cookies = ctx.get('cookie')
  const hasCookies = [sessionCookie, renewedCookie].some((name) => readCookie(cookies, name) !== undefined)
  if (!refreshToken && !hasCookies) {
    if (query.has('checked')) return to
    setCookies(ctx, [renewedMarker(undefined)])
    redirect(ctx, `${renewalPath}?to=${encodeURIComponent(to)}&checked=1`)
    return undefined
  }
  if (refreshToken) {
    const tokens = await tokenRefresher.refresh(refreshToken, visitorOf(ctx))
    setCookies(ctx, tokens ? signInCookies(tokens) : signOutCookies)
    setCookies(ctx, [renewedMarker(tokens?.cp_access_jwt)])
  } else setCookies(ctx, [renewedMarker(readAccessToken(ctx))])
  redirect(ctx, to)
  return undefined
}

function redirect(ctx: Context, location: string): void {
  ctx.status = 307
  ctx.set('Location', location)
  ctx.body = ''
}

const renewedMarker = (accessToken: string | undefined): Cookie => ({
  name: renewedCookie,
  value: hashOf(accessToken),
  path: '/',
  maxAgeSeconds: renewedSeconds,
  sameSite: 'Lax',
})

const hashOf = (accessToken = ''): string => createHash('sha256').update(accessToken).digest('base64url').slice(0, 16)
