/** The HTTP application: what happens to every request before and after its route. */
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { Router } from '@koa/router'
import helmet from 'helmet'
import Koa, { type Context, type Middleware } from 'koa'
import type { z } from 'zod'
import { isInvalidText, isOutage } from '../../db/connection.ts'
import type { User } from '../identity/access-tokens.ts'
import type { Services } from '../services.ts'
import type { Identify } from './callers.ts'
import { type HttpMetrics, templateOf } from './metrics.ts'
import { addressSubject } from './networks.ts'
import { Refusal } from './refusals.ts'
import { readBytes, readJson, requireJson } from './request-bodies.ts'
import { createOriginCheck } from './request-origin.ts'
import type { Route } from './route.ts'

export const basePath = '/api/v1'

interface Needs {
  readonly services: Services
  readonly identify: Identify
  readonly httpMetrics: HttpMetrics
  readonly routes: readonly Route[]
  /** Routes outside the base path: health, metrics, documentation. */
  readonly pages: Router
  /** False while the database has not been brought up to date. */
  readonly isReady: () => boolean
}

export function createApp({ services, identify, httpMetrics, routes, pages, isReady }: Needs): Koa {
  const app = new Koa({ proxy: services.config.trustedProxyHops > 0, maxIpsCount: services.config.trustedProxyHops })
  app.silent = true
  app.use(observe(services, httpMetrics))
  app.use(answerRefusals(services))
  app.use(securityHeaders)
  app.use(refuseUnreadable)
  app.use(pages.routes())
  app.use(refuseUntilReady(isReady))
  const router = new Router({ prefix: basePath, sensitive: true, strict: true })
  // Without operators their paths are not there at all, whatever the method.
  const hasOperators = services.config.operatorPassword !== undefined
  for (const route of routes) if (hasOperators || route.caller !== 'operator') mount(router, route, services, identify)
  app.use(router.routes())
  app.use(refuseUnknown([pages, router]))
  return app
}

/** Gives each request an id, and says in logs and metrics how it went, by the route's template only. */
const observe =
  ({ log }: Services, httpMetrics: HttpMetrics): Middleware =>
  async (ctx, next) => {
    const requestId = randomUUID()
    const startedAt = performance.now()
    ctx.state.requestId = requestId
    ctx.set('X-Request-Id', requestId)
    try {
      await next()
    } finally {
      const seconds = (performance.now() - startedAt) / 1000
      const template = templateOf(ctx)
      httpMetrics.observe({ method: ctx.method, route: template, status: ctx.status, seconds })
      log.debug(
        {
          request_id: requestId,
          method: ctx.method,
          route: template,
          status: ctx.status,
          ms: Math.round(seconds * 1000),
        },
        'answered',
      )
    }
  }

/** Turns whatever was thrown into the contract's error body. What nobody foresaw is logged whole and told nothing. */
const answerRefusals =
  ({ log }: Services): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = asRefusal(error)
      if (refusal.status >= 500)
        log.error({ request_id: ctx.state.requestId, err: error, code: refusal.code }, 'request failed')
      ctx.set(refusal.headers)
      ctx.status = refusal.status
      ctx.body = refusal.body
    }
  }

function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (isOutage(error)) return new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  // Text that Postgres can't hold, in a place where no schema forbade it.
  if (isInvalidText(error)) return new Refusal('invalid_request')
  return new Refusal('internal_error')
}

/** The same for every reply, so they are made once. */
const securityHeaders = ((): Middleware => {
  const fixed: [string, string][] = []
  const note = { setHeader: (name: string, value: string) => fixed.push([name, value]), removeHeader() {} }
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginResourcePolicy: { policy: 'same-site' },
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
  })({} as never, note as never, () => {})
  return (ctx, next) => {
    for (const [name, value] of fixed) ctx.res.setHeader(name, value)
    return next()
  }
})()

/** An address that can't be read, or no host at all, which Node would refuse in its own words. */
const refuseUnreadable: Middleware = (ctx, next) => {
  const { headers, httpVersion } = ctx.req
  if ((headers.host === undefined && httpVersion === '1.1') || !isAddressReadable(ctx)) throw notHttp()
  return next()
}

function isAddressReadable(ctx: Context): boolean {
  try {
    return ctx.path !== undefined
  } catch {
    return false
  }
}

export const notHttp = (): Refusal => new Refusal('invalid_request', { message: 'This is not a valid HTTP request.' })

const refuseUntilReady =
  (isReady: () => boolean): Middleware =>
  (_, next) => {
    if (isReady()) return next()
    throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  }

/** One route in its order: who asks, how often, what exactly, and only then the answer. */
function mount(router: Router, route: Route, services: Services, identify: Identify): void {
  const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
  const checkOrigin = createOriginCheck(services.config)
  const isOperatorWrite = route.caller === 'operator' && route.method !== 'GET'
  router.register(path, [route.method], async (ctx) => {
    if (route.secret) ctx.set('Cache-Control', 'no-store')
    const ip = clientAddress(ctx.ip, ctx.req.socket.remoteAddress)
    const header = (name: string) => ctx.get(name) || undefined
    // Before the password is looked at: another site's page neither acts nor uses up an operator's tries.
    if (isOperatorWrite) checkOrigin(header)
    const caller = await identify(route.caller, { ip, header })
    if (route.limit && !route.countsItself) {
      const subject = route.caller === 'user' ? (caller as User).userId : addressSubject(ip)
      ctx.set(await services.rateLimits.count(route.limit, subject))
    }
    const params = route.params ? parsed(route.params, ctx.params, 'path') : {}
    const query = route.query ? parsed(route.query, ctx.query, 'query') : {}
    if (isOperatorWrite && route.method === 'POST') requireJson(ctx)
    const body = route.body ? parsed(route.body, await readJson(ctx), 'body') : {}
    const bytes = route.bytesMax === undefined ? noBytes : await readBytes(ctx.req, route.bytesMax)
    const userAgent = (header('user-agent') ?? '').slice(0, 256)
    const { headers } = ctx.req
    const reply = await route.handle({ caller, params, query, body, bytes, ip, userAgent, header, headers }, services)
    ctx.set(reply.headers ?? {})
    ctx.status = reply.status
    if (reply.body) ctx.body = reply.body
  })
}

const noBytes = Buffer.alloc(0)

/** Checks the outside world against a schema. A path that names nothing possible is not found; the rest is invalid. */
function parsed<Value>(schema: z.ZodType<Value>, value: unknown, where: 'path' | 'query' | 'body'): Value {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  if (where === 'path') throw new Refusal('not_found')
  const [issue] = result.error.issues
  const name = issue?.path.join('.')
  throw new Refusal('invalid_request', {
    message: name ? `${where} field ${name}: ${issue?.message}` : `${where}: ${issue?.message}`,
  })
}

/** An address to count by: what the trusted proxies say when that is an address, else the peer's own. */
function clientAddress(claimed: string, peer: string | undefined): string {
  const address = isIP(claimed) ? claimed : (peer ?? '0.0.0.0')
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '')
}

/** A known path with another method is told so, everything else is unknown. */
const refuseUnknown =
  (routers: readonly Router[]): Middleware =>
  (ctx) => {
    const allowed = new Set(
      routers.flatMap((one) => one.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods)),
    )
    if (allowed.size === 0) throw new Refusal('not_found')
    throw new Refusal('method_not_allowed', { headers: { Allow: [...allowed].sort().join(', ') } })
  }
