/** The security headers of every reply. */
import helmet from 'helmet'
import type { Middleware } from 'koa'
import type { SiteConfig } from '../platform/config/site.ts'

/** Computes the headers once. They forbid inline scripts and styles, third-party content and framing. */
export function securityHeaders({ siteUrl }: SiteConfig): Middleware {
  const headers: [string, string][] = []
  const recorder = { setHeader: (name: string, value: string) => headers.push([name, value]), removeHeader() {} }
  helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        baseUri: ["'none'"],
        objectSrc: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    crossOriginResourcePolicy: { policy: 'same-origin' },
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
    strictTransportSecurity: siteUrl.startsWith('https:'),
  })({} as never, recorder as never, () => {})
  return async (ctx, next) => {
    for (const [name, value] of headers) ctx.res.setHeader(name, value)
    // Pages contain personal data. Assets override it.
    ctx.set('Cache-Control', 'no-store')
    await next()
  }
}
