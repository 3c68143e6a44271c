/** Renewing a sign-in on the way to a page: here the refresh token's cookie comes along, to the page it does not. */
import type { Context } from 'koa'
import { ApiAway } from './api.ts'
import type { Site } from './app.ts'
import { readCookie, refreshCookie, setCookies, signedIn, signedOut } from './cookies.ts'
import { localPath } from './local-path.ts'
import { visitorOf } from './visits.ts'

/** Answers with the way back, method and form kept. Without a refresh token that counts the person is signed out there. */
export async function renew(ctx: Context, { refreshing }: Site): Promise<void> {
  const to = localPath(new URLSearchParams(ctx.search).get('to'), '/')
  const site = ctx.get('sec-fetch-site')
  // Another site may send a browser here, without its cookies: that is no reason to sign anybody out.
  if (site !== 'cross-site' && site !== 'same-site') setCookies(ctx, await exchanged(ctx, refreshing))
  ctx.status = 307
  ctx.set('Location', to)
  ctx.body = ''
}

async function exchanged(ctx: Context, refreshing: Site['refreshing']) {
  const token = readCookie(ctx.get('cookie'), refreshCookie)
  if (!token) return signedOut
  try {
    const tokens = await refreshing.refresh(token, visitorOf(ctx))
    return tokens ? signedIn(tokens) : signedOut
  } catch (error) {
    throw error instanceof ApiAway ? error : new ApiAway('the sign-in could not be renewed', { cause: error })
  }
}
