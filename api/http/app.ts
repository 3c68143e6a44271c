/** The Koa application: the middleware around every request, and the registration of the routes. */
import { randomUUID } from 'node:crypto'
import { Router } from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import type { z } from 'zod'
import { isInvalidText, isOutage } from '../../db/connection.ts'
import { findAllowedMethods } from '../../platform/koa/allowed-methods.ts'
import { clientAddress, createKoa } from '../../platform/koa/client-address.ts'
import { createSecurityHeaders } from '../../platform/koa/security-headers.ts'
import type { Tracing } from '../../platform/tracing.ts'
import type { Services } from '../services.ts'
import type { Authenticate } from './authentication.ts'
import { type HttpMetrics, routeTemplate } from './http-metrics.ts'
import { clientNetwork } from './ip-networks.ts'
import { Refusal } from './refusals.ts'
import { readBytes, readJson, requireJson } from './request-bodies.ts'
import { createOriginCheck } from './request-origin.ts'
import { traceRequest } from './request-spans.ts'
import type { CallerKind, Route } from './route.ts'

export const basePath = '/api/v1'

interface Deps {
  readonly services: Services
  readonly authenticate: Authenticate
  readonly httpMetrics: HttpMetrics
  readonly routes: readonly Route[]
  /** Routes outside the base path: health, metrics, documentation. */
  readonly unversionedRoutes: Router
  /** False until the database migrations have run. */
  readonly isReady: () => boolean
  readonly tracing: Tracing | undefined
}

export function createApp(deps: Deps): Koa {
  const { services, authenticate, httpMetrics, routes, unversionedRoutes, isReady, tracing } = deps
  const app = createKoa(services.config.trustedProxyHops)
  if (tracing) app.use(traceRequest(tracing))
  app.use(recordRequest(services, httpMetrics))
  app.use(handleErrors(services))
  app.use(setSecurityHeaders)
  app.use(refuseInvalidHttp)
  app.use(unversionedRoutes.routes())
  app.use(refuseUntilReady(isReady))
  const router = new Router({ prefix: basePath, sensitive: true, strict: true })
  // Without an operator password the operator routes do not exist: 404 for every method.
  const hasOperators = services.config.operatorPassword !== undefined
  const offered = routes.filter(({ caller }) => hasOperators || caller !== 'operator')
  const exactPaths = new Set(offered.map(({ path }) => basePath + path))
  for (const route of offered) register(router, route, { services, authenticate, exactPaths })
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
    ctx.set('X-Request-Id', requestId)
    try {
      await next()
    } finally {
      const seconds = (performance.now() - startedAt) / 1000 - (ctx.state.waitedSeconds ?? 0)
      const template = routeTemplate(ctx)
      httpMetrics.observe({ method: ctx.method, route: template, status: ctx.status, seconds })
      log.debug(
        {
          request_id: requestId,
          method: ctx.method,
          route: template,
          status: ctx.status,
          ms: Math.round(seconds * 1000),
        },
        'request completed',
      )
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
      ctx.set(refusal.headers)
      ctx.status = refusal.status
      ctx.body = refusal.body
    }
  }

function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (isOutage(error)) return new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  // Text that Postgres cannot store, in a field whose schema does not exclude it.
  if (isInvalidText(error)) return new Refusal('invalid_request')
  return new Refusal('internal_error')
}

const setSecurityHeaders = createSecurityHeaders({
  directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  resourcePolicy: 'same-site',
  requiresHttps: true,
})

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

const refuseUntilReady =
  (isReady: () => boolean): Middleware =>
  (_, next) => {
    if (isReady()) return next()
    throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  }

interface Registration {
  readonly services: Services
  readonly authenticate: Authenticate
  /** The paths of all routes; those with parameters equal no request's path. */
  readonly exactPaths: ReadonlySet<string>
}

/** Checks a request in this order: origin, credentials, rate limit, input. Then runs the handler. */
function register(router: Router, route: Route, { services, authenticate, exactPaths }: Registration): void {
  const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
  const checkOrigin = createOriginCheck(services.config)
  const isOperatorWrite = route.caller === 'operator' && route.method !== 'GET'
  router.register(path, [route.method], async (ctx, next) => {
    // The path is that of another route, which does not support this method.
    if (route.params && exactPaths.has(ctx.path)) return next()
    if (route.secret) ctx.set('Cache-Control', 'no-store')
    const ip = clientAddress(ctx)
    const header = (name: string) => ctx.get(name) || undefined
    // Before the password: a page of another site must not use up the operator's sign-in attempts.
    if (isOperatorWrite) checkOrigin(header)
    const caller = await authenticate(route.caller, { ip, header })
    if (route.limit && !route.isCountedByHandler) {
      ctx.set(await services.rateLimits.count(route.limit, limitSubject(route.caller, caller, ip)))
    }
    const params = route.params ? parseInput(route.params, ctx.params, 'path') : {}
    const query = route.query ? parseInput(route.query, ctx.query, 'query') : {}
    if (isOperatorWrite && route.method === 'POST') requireJson(ctx)
    const body = route.body ? parseInput(route.body, await readJson(ctx), 'body') : {}
    const bytes = route.bytesMax === undefined ? noBytes : await readBytes(ctx.req, route.bytesMax)
    const userAgent = (header('user-agent') ?? '').slice(0, 256)
    const { req: incoming, state } = ctx
    const { headers } = incoming
    const { requestId } = state as { requestId: string }
    const reply = await route.handle(
      { caller, params, query, body, bytes, ip, userAgent, header, headers, incoming, requestId },
      services,
    )
    // The connection belongs to another protocol now.
    if (reply.status === 101) ctx.respond = false
    ctx.state.waitedSeconds = reply.waitedSeconds
    ctx.set(reply.headers ?? {})
    ctx.status = reply.status
    if (reply.body) ctx.body = reply.body
  })
}

/** The caller's user id or network, whichever the limits of the route count by. */
const limitSubject = (kind: CallerKind, caller: unknown, ip: string): string =>
  kind === 'user' || kind === 'relay_watcher' ? (caller as { userId: string }).userId : clientNetwork(ip)

const noBytes = Buffer.alloc(0)

/** Refuses with `not_found` for path parameters and with `invalid_request` otherwise. */
function parseInput<Value>(schema: z.ZodType<Value>, value: unknown, where: 'path' | 'query' | 'body'): Value {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  if (where === 'path') throw new Refusal('not_found')
  const [issue] = result.error.issues
  const name = issue?.path.join('.')
  throw new Refusal('invalid_request', {
    message: name ? `${where} field ${name}: ${issue?.message}` : `${where}: ${issue?.message}`,
  })
}

/** `method_not_allowed` if the path has a route with another method, otherwise `not_found`. */
const refuseUnmatched =
  (routers: readonly Router[]): Middleware =>
  (ctx) => {
    const allowed = findAllowedMethods(ctx, routers)
    if (allowed.length === 0) throw new Refusal('not_found')
    throw new Refusal('method_not_allowed', { headers: { Allow: allowed.join(', ') } })
  }
