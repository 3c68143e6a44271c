/** The security headers of the site. */
import type { Context, Middleware } from 'koa'
import type { SiteConfig } from '../platform/config/site.ts'
import { createSecurityHeaders } from '../platform/koa/security-headers.ts'

/** They forbid inline scripts and styles, third-party content and framing. */
export function securityHeaders({ siteUrl }: SiteConfig): Middleware {
  const setHeaders = createSecurityHeaders({
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      fontSrc: ["'self'"],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      objectSrc: ["'none'"],
      frameAncestors: ["'none'"],
    },
    resourcePolicy: 'same-origin',
    requiresHttps: siteUrl.startsWith('https:'),
  })
  return (ctx, next) => {
    // Pages contain personal data. Assets override it.
    ctx.set('Cache-Control', 'no-store')
    return setHeaders(ctx, next)
  }
}

export const policyName = 'Content-Security-Policy'

/** Lets the scripts of this response send requests to these origins too. */
export function allowConnectionsTo(ctx: Context, origins: readonly string[]): void {
  if (origins.length === 0) return
  const policy = ctx.response.get(policyName)
  ctx.set(
    policyName,
    policy.replace(/\bconnect-src [^;]*/, (sources) => [sources, ...origins].join(' ')),
  )
}
