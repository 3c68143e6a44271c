/** The security headers of the site. */
import type { Middleware } from 'koa'
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
