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
  setCookies,
  signInCookies,
  signOutCookies,
} from './cookies.ts'
import { localPath } from './local-path.ts'
import type { TokenRefresher } from './token-refresh.ts'
import { visitorOf } from './visit.ts'

export const renewalPath = `${refreshPath}/return`

/** Holds a hash of the access token that the last renewal ended with. Prevents redirect loops; worthless to an attacker. */
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
 * Exchanges the refresh token and redirects to the page in `to`. Without a refresh token the cookies stay unchanged: after a
 * cross-site navigation the browser does not send it. Rejects with `ApiUnavailableError`.
 */
export async function renewSignIn(
  ctx: Context,
  { tokenRefresher }: { readonly tokenRefresher: TokenRefresher },
): Promise<void> {
  const refreshToken = readRefreshToken(ctx)
  if (refreshToken) {
    const tokens = await tokenRefresher.refresh(refreshToken, visitorOf(ctx))
    setCookies(ctx, tokens ? signInCookies(tokens) : signOutCookies)
    setCookies(ctx, [renewedMarker(tokens?.cp_access_jwt)])
  } else setCookies(ctx, [renewedMarker(readAccessToken(ctx))])
  redirect(ctx, localPath(new URLSearchParams(ctx.search).get('to'), '/'))
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
  sameSite: 'Strict',
})

const hashOf = (accessToken = ''): string => createHash('sha256').update(accessToken).digest('base64url').slice(0, 16)
