/** Security headers of every response. */
import helmet from 'helmet'
import type { Middleware } from 'koa'

interface SecurityOptions {
  /** Content security policy: the sources that each directive allows. */
  readonly directives: Readonly<Record<string, readonly string[]>>
  /** Which sites may embed the responses as resources. */
  readonly resourcePolicy: 'same-origin' | 'same-site'
  /** Whether browsers must use HTTPS from now on. */
  readonly requiresHttps: boolean
}

/**
 * The headers of helmet by name. They are the same for every response, so they are computed once; `koa-helmet` would
 * run all of helmet's middleware for each request.
 */
export function listSecurityHeaders({
  directives,
  resourcePolicy,
  requiresHttps,
}: SecurityOptions): Readonly<Record<string, string>> {
  const headers: [string, string][] = []
  const recorder = { setHeader: (name: string, value: string) => headers.push([name, value]), removeHeader() {} }
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives },
    crossOriginResourcePolicy: { policy: resourcePolicy },
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
    strictTransportSecurity: requiresHttps,
  })({} as never, recorder as never, () => {})
  return Object.fromEntries(headers)
}

/** Sets the headers of {@link listSecurityHeaders}. */
export function createSecurityHeaders(options: SecurityOptions): Middleware {
  const headers = Object.entries(listSecurityHeaders(options))
  return (ctx, next) => {
    for (const [name, value] of headers) ctx.res.setHeader(name, value)
    return next()
  }
}
