/**
 * Renewing a sign-in on the way to a page. The refresh token's cookie comes along to one path only, so the browser is sent
 * there, and back with the new cookies, by its own means: method and form are kept, and the person notices nothing.
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

/** Which access token came out of a renewal a moment ago; of no use to anybody who reads it. */
const renewedCookie = 'svc_renewed'
/** Long enough for the way back to a page, and much less than an access token lives. */
const renewedSeconds = 10

export function redirectToRenewal(ctx: Context): void {
  redirect(ctx, `${renewalPath}?to=${encodeURIComponent(ctx.url)}`)
}

/** Whether the browser was there just now and came back with what it brings: going again would go on for ever. */
export const isRecentlyRenewed = (ctx: Context): boolean =>
  readCookie(ctx.get('cookie'), renewedCookie) === markOf(readAccessToken(ctx))

/**
 * Answers with the way back. Without a refresh token nothing changes: another site may have sent the browser here, which
 * then leaves its cookies at home, and that is no reason to sign anybody out. Rejects with `ApiUnavailableError`.
 */
export async function renew(
  ctx: Context,
  { tokenRefresher }: { readonly tokenRefresher: TokenRefresher },
): Promise<void> {
  const refreshToken = readRefreshToken(ctx)
  if (refreshToken) {
    const tokens = await tokenRefresher.refresh(refreshToken, visitorOf(ctx))
    setCookies(
      ctx,
      tokens ? [...signInCookies(tokens), mark(tokens.cp_access_jwt)] : [...signOutCookies, mark(undefined)],
    )
  } else setCookies(ctx, [mark(readAccessToken(ctx))])
  redirect(ctx, localPath(new URLSearchParams(ctx.search).get('to'), '/'))
}

/** With the method and the form that came. */
function redirect(ctx: Context, location: string): void {
  ctx.status = 307
  ctx.set('Location', location)
  ctx.body = ''
}

const mark = (accessToken: string | undefined): Cookie => ({
  name: renewedCookie,
  value: markOf(accessToken),
  path: '/',
  maxAgeSeconds: renewedSeconds,
  sameSite: 'Strict',
})

const markOf = (accessToken = ''): string => createHash('sha256').update(accessToken).digest('base64url').slice(0, 16)
