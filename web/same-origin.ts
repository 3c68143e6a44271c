/** Which requests may change something: those that a page of ours sent. */
import type { Context } from 'koa'

const readOnly = ['GET', 'HEAD', 'OPTIONS']

/**
 * By Fetch Metadata, which no page can forge; browsers without it name at least the Origin. `null` is nobody's. A client
 * that sends neither is no browser, and has no cookies of somebody else's.
 */
export function isCrossOriginWrite(ctx: Context, siteOrigin: string): boolean {
  if (readOnly.includes(ctx.method)) return false
  const site = ctx.get('sec-fetch-site')
  if (site !== '') return site !== 'same-origin'
  const origin = ctx.get('origin')
  return origin !== '' && origin !== siteOrigin
}

/** A page of another site, or a link in a mail, opened this address: Strict cookies stayed at home. */
export const isCrossSiteNavigation = (ctx: Context): boolean =>
  ctx.method === 'GET' && ctx.get('sec-fetch-site') === 'cross-site' && ctx.get('sec-fetch-mode') === 'navigate'
