/** Where requests come from: CSRF protection by Fetch Metadata and Origin. */
import type { Context } from 'koa'

const readMethods = ['GET', 'HEAD', 'OPTIONS']

/**
 * Whether a page of another origin sent a request that can change something. Pages cannot forge Fetch Metadata;
 * browsers without it send at least Origin, which is `null` for opaque origins. A client that sends neither is not a
 * browser.
 */
export function isCrossOriginWrite(ctx: Context, siteOrigin: string): boolean {
  if (readMethods.includes(ctx.method)) return false
  const site = ctx.get('sec-fetch-site')
  if (site !== '') return site !== 'same-origin'
  const origin = ctx.get('origin')
  return origin !== '' && origin !== siteOrigin
}

/**
 * Whether a page of another site or a link in an email opened this address: the browser then sends no Strict cookies.
 */
export const isCrossSiteNavigation = (ctx: Context): boolean =>
  ctx.method === 'GET' && ctx.get('sec-fetch-site') === 'cross-site' && ctx.get('sec-fetch-mode') === 'navigate'

/**
 * Whether a page of this origin opened a WebSocket. Browsers send `Origin` with every handshake, and some Fetch
 * Metadata.
 */
export const isFromPageOf = (ctx: Context, siteOrigin: string): boolean =>
  ctx.get('origin') === siteOrigin && ['', 'same-origin'].includes(ctx.get('sec-fetch-site'))
