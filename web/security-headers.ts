/** What every reply tells browsers to hold to. */
import helmet from 'helmet'
import type { Middleware } from 'koa'
import type { SiteConfig } from '../platform/config/site.ts'

/** The same for every reply, so they are made once. No inline script or style, and in nobody's frame. */
export function securityHeaders({ siteUrl }: SiteConfig): Middleware {
  const fixed: [string, string][] = []
  const note = { setHeader: (name: string, value: string) => fixed.push([name, value]), removeHeader() {} }
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
  })({} as never, note as never, () => {})
  return async (ctx, next) => {
    for (const [name, value] of fixed) ctx.res.setHeader(name, value)
    // Pages show what only their reader may see; assets say otherwise for themselves.
    ctx.set('Cache-Control', 'no-store')
    await next()
  }
}
