/** The span of each request, named by its route template: paths and queries may contain ids and tokens. */
import type { Middleware } from 'koa'
import type { Tracing } from '../../platform/tracing.ts'
import { routeTemplate } from './http-metrics.ts'

export const traceRequest =
  (tracing: Pick<Tracing, 'runInRequestSpan'>): Middleware =>
  (ctx, next) =>
    tracing.runInRequestSpan(ctx.method, ctx.headers, async (span) => {
      await next()
      const route = routeTemplate(ctx)
      span.setName(`${ctx.method} ${route}`)
      span.setAttribute('http.request.method', ctx.method)
      span.setAttribute('http.route', route)
      span.setAttribute('http.response.status_code', ctx.status)
      if (ctx.status >= 500) span.fail(String(ctx.status))
    })
