/** The Koa application: the middleware around every request, and the order in which the routes are tried. */
import { randomUUID } from 'node:crypto'
import type { Router } from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import { isInvalidText, isOutage } from '../../db/connection.ts'
import { findAllowedMethods } from '../../platform/koa/allowed-methods.ts'
import { createKoa } from '../../platform/koa/client-address.ts'
import type { Tracing } from '../../platform/tracing.ts'
import type { Services } from '../services.ts'
import type { Admit } from './admission.ts'
import { type HttpMetrics, routeTemplate } from './http-metrics.ts'
import { Refusal } from './refusals.ts'
import { traceRequest } from './request-spans.ts'
import { addHeaders, beginHeaders, send, setHeaders } from './responses.ts'
import type { Route } from './route.ts'
import { createRouteDispatch } from './route-dispatch.ts'
import { createRouteHandler } from './route-handler.ts'

export const basePath = '/api/v1'

interface Deps {
  readonly services: Services
  readonly admit: Admit
  readonly httpMetrics: HttpMetrics
  readonly routes: readonly Route[]
  /** Routes outside the base path: health, metrics, documentation. */
  readonly unversionedRoutes: Router
  /** False until the database migrations have run. */
  readonly isReady: () => boolean
  readonly tracing: Tracing | undefined
}

export function createApp(deps: Deps): Koa {
  const { services, admit, httpMetrics, routes, unversionedRoutes, isReady, tracing } = deps
  const app = createKoa(services.config.trustedProxyHops, services.log)
  if (tracing) app.use(traceRequest(tracing))
  app.use(recordRequest(services, httpMetrics))
  app.use(handleErrors(services))
  app.use(refuseInvalidHttp)
  app.use(serveUnversioned(unversionedRoutes))
  app.use(refuseUntilReady(isReady))
  // Without an operator password the operator routes do not exist: 404 for every method.
  const hasOperators = services.config.operatorPassword !== undefined
  const offered = routes.filter(({ caller }) => hasOperators || caller !== 'operator')
  const { serveExactPaths, router } = createRouteDispatch(offered, basePath, (route) =>
    createRouteHandler(route, { services, admit }),
  )
  app.use(serveExactPaths)
  app.use(router.routes())
  app.use(refuseUnmatched([unversionedRoutes, router]))
  return app
}

/** Assigns a request id, and records status and duration in the log and the metrics by route template. */
const recordRequest =
  ({ log }: Services, httpMetrics: HttpMetrics): Middleware =>
  async (ctx, next) => {
    const requestId = randomUUID()
    const startedAt = performance.now()
    ctx.state.requestId = requestId
    beginHeaders(ctx, { 'X-Request-Id': requestId })
    try {
      await next()
    } finally {
      if (ctx.respond !== false) setHeaders(ctx)
      const seconds = (performance.now() - startedAt) / 1000 - (ctx.state.waitedSeconds ?? 0)
      const template = routeTemplate(ctx)
      const ms = Math.round(seconds * 1000)
      const { method, status } = ctx
      httpMetrics.observe({ method, route: template, status, seconds })
      log.debug({ request_id: requestId, method, route: template, status, ms }, 'request completed')
    }
  }

/** Turns every thrown error into the error response of the API. Unexpected errors are logged and answered without details. */
const handleErrors =
  ({ log }: Services): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = toRefusal(error)
      const fields = { request_id: ctx.state.requestId, code: refusal.code }
      // A 503 that a route decides on is an expected state, such as a relay that is starting, and no failure.
      if (refusal.status === 503 && error instanceof Refusal) log.info(fields, 'request refused for now')
      else if (refusal.status >= 500) log.error({ ...fields, err: error }, 'request failed')
      addHeaders(ctx, refusal.headers)
      send(ctx, refusal.status, refusal.body)
    }
  }

function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (isOutage(error)) return new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  // Text that Postgres cannot store, in a field whose schema does not exclude it.
  if (isInvalidText(error)) return new Refusal('invalid_request')
  return new Refusal('internal_error')
}

/** A request target that cannot be parsed, or a missing Host header; Node would refuse them without the API's error body. */
const refuseInvalidHttp: Middleware = (ctx, next) => {
  const { headers, httpVersion } = ctx.req
  if ((headers.host === undefined && httpVersion === '1.1') || !isTargetValid(ctx)) throw invalidHttpRequest()
  return next()
}

function isTargetValid(ctx: Context): boolean {
  try {
    return ctx.path !== undefined
  } catch {
    return false
  }
}

export const invalidHttpRequest = (): Refusal =>
  new Refusal('invalid_request', { message: 'This is not a valid HTTP request.' })

/** The router of these paths compares a path with each of its patterns, which the paths of the API need not pay. */
function serveUnversioned(router: Router): Middleware {
  const serve = router.routes() as Middleware
  return (ctx, next) => (ctx.path.startsWith(`${basePath}/`) ? next() : serve(ctx, next))
}

const refuseUntilReady =
  (isReady: () => boolean): Middleware =>
  (_, next) => {
    if (isReady()) return next()
    throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  }

/** `method_not_allowed` if the path has a route with another method, otherwise `not_found`. */
const refuseUnmatched =
  (routers: readonly Router[]): Middleware =>
  (ctx) => {
    const allowed = findAllowedMethods(ctx, routers)
    if (allowed.length === 0) throw new Refusal('not_found')
    throw new Refusal('method_not_allowed', { headers: { Allow: allowed.join(', ') } })
  }
