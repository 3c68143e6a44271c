/** The Koa application: the middleware around every request, and the order in which the routes are tried. */
import { randomUUID } from 'node:crypto'
import type { Router } from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import { isAccountErased, isInvalidText, isOutage } from '../../db/connection.ts'
import type { Config } from '../../platform/config/config.ts'
import { findAllowedMethods } from '../../platform/koa/allowed-methods.ts'
import { createKoa } from '../../platform/koa/client-address.ts'
import type { Logger } from '../../platform/log.ts'
import type { Tracing } from '../../platform/tracing.ts'
import { type HttpMetrics, routeTemplate } from './http-metrics.ts'
import { Refusal } from './refusals.ts'
import { createOriginCheck } from './request-origin.ts'
import { traceRequest } from './request-spans.ts'
import { addHeaders, beginHeaders, send, setHeaders } from './responses.ts'
import { createRouteDispatch } from './route-dispatch.ts'
import { createRouteHandler } from './route-handler.ts'
import type { ServedRoute } from './served-route.ts'

export const basePath = '/api/v1'

interface Deps {
  readonly config: Pick<Config, 'apiUrl' | 'siteUrl' | 'trustedProxyHops'>
  readonly log: Logger
  readonly httpMetrics: HttpMetrics
  readonly routes: readonly ServedRoute[]
  /** Routes outside the base path: health, metrics, documentation. */
  readonly unversionedRoutes: Router
  /** False until the database migrations have run. */
  readonly isReady: () => boolean
  readonly tracing: Tracing | undefined
}

export function createApp(deps: Deps): Koa {
  const { config, log, httpMetrics, routes, unversionedRoutes, isReady, tracing } = deps
  const app = createKoa(config.trustedProxyHops, log)
  if (tracing) app.use(traceRequest(tracing))
  app.use(recordRequest(log, httpMetrics))
  app.use(handleErrors(log))
  app.use(refuseInvalidHttp)
  app.use(serveUnversioned(unversionedRoutes))
  app.use(refuseUntilReady(isReady))
  const checkOrigin = createOriginCheck(config)
  const { serveExactPaths, router } = createRouteDispatch(routes, basePath, (route) =>
    createRouteHandler(route, checkOrigin),
  )
  app.use(serveExactPaths)
  app.use(router.routes())
  app.use(refuseUnmatched([unversionedRoutes, router]))
  return app
}

/** Assigns a request id, and records status and duration in the log and the metrics by route template. */
const recordRequest =
  (log: Logger, httpMetrics: HttpMetrics): Middleware =>
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

/**
 * Turns every thrown error into the error response of the API. Unexpected errors are logged and answered without
 * details.
 */
const handleErrors =
  (log: Logger): Middleware =>
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
      send(ctx, refusal.status, isFlatPath(ctx) ? refusal.flatBody : refusal.body)
    }
  }

/** Paths of protocols whose errors are flat: those of the provider for apps, and those that the OBS source reads. */
const isFlatPath = (ctx: Context): boolean => isTargetValid(ctx) && flatPath.test(ctx.path)
const flatPath = /^(\/oauth|\/api\/v1\/ingests)(\/|$)/

function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  // An account that was erased meanwhile is not found by the next request.
  if (isOutage(error) || isAccountErased(error))
    return new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  // Text that Postgres cannot store, in a field whose schema does not exclude it.
  if (isInvalidText(error)) return new Refusal('invalid_request')
  return new Refusal('internal_error')
}

/**
 * A request target that cannot be parsed, or a missing Host header; Node would refuse them without the API's error
 * body.
 */
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
