/** The site's HTTP application: what happens to every request before and after its page. */
import { Router } from '@koa/router'
import helmet from 'helmet'
import Koa, { type Context, type Middleware } from 'koa'
import type { VNode } from 'preact'
import type { SiteConfig } from '../platform/config.ts'
import type { Logger } from '../platform/log.ts'
import { type Api, ApiAway } from './api.ts'
import type { Assets } from './assets.ts'
import { forward } from './backend-for-frontend.ts'
import { refreshPath, setCookies } from './cookies.ts'
import { html } from './document.tsx'
import type { PageAnswer, PageRoute } from './page-route.ts'
import { leadingPage, problemPage } from './pages/problem.tsx'
import { pages } from './pages.ts'
import type { Refreshing } from './refreshing.ts'
import { renew } from './renewal.ts'
import { BodyTooLarge } from './request-body.ts'
import { arrivesFromElsewhere, isFromElsewhere } from './same-origin.ts'
import { isSignedIn, mustRenew, SignInOver, startVisit, visitorOf } from './visits.ts'

export interface Site {
  readonly config: SiteConfig
  readonly log: Logger
  readonly api: Api
  readonly assets: Assets
  readonly refreshing: Refreshing
}

export function createApp(site: Site): Koa {
  const { trustedProxyHops } = site.config
  const app = new Koa({ proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops })
  app.silent = true
  app.use(securityHeaders(site.config))
  app.use(answerProblems(site))
  app.use(serveAssets(site.assets))
  app.use(refuseWritesFromElsewhere(site))
  const router = new Router({ sensitive: true, strict: true })
  router.get('/livez', (ctx) => {
    ctx.body = { status: 'ok' }
  })
  router.register(`${refreshPath}/return`, ['GET', 'POST'], (ctx) => renew(ctx, site))
  for (const page of pages) mount(router, page, site)
  app.use(router.routes())
  app.use(backendForFrontend(site))
  app.use((ctx) => answer(ctx, site, problemPage('not_found')))
  return app
}

/** The same for every reply, so they are made once. No inline script or style, and in nobody's frame. */
function securityHeaders({ siteUrl }: SiteConfig): Middleware {
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

const serveAssets =
  (assets: Assets): Middleware =>
  (ctx, next) => {
    const asset = ctx.method === 'GET' || ctx.method === 'HEAD' ? assets.at(ctx.path) : undefined
    if (!asset) return next()
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable')
    ctx.type = asset.type
    ctx.body = asset.bytes
  }

/** A request that changes something and was sent by another site's page does nothing. */
const refuseWritesFromElsewhere =
  (site: Site): Middleware =>
  (ctx, next) => {
    if (!isFromElsewhere(ctx, new URL(site.config.siteUrl).origin)) return next()
    if (ctx.path.startsWith('/api/')) return answerJson(ctx, [403, 'forbidden', 'This was sent from another site.'])
    return answer(ctx, site, problemPage('forbidden'))
  }

/** One page in its order: who comes from where, whether their sign-in has to be renewed first, and only then the page. */
function mount(router: Router, page: PageRoute, site: Site): void {
  router.register(page.path, [page.method], async (ctx) => {
    const signedIn = isSignedIn(ctx)
    // Strict cookies don't come along from elsewhere. A step of our own fetches them, or a signed-in person seems a stranger.
    if (!signedIn && !page.arrival && arrivesFromElsewhere(ctx))
      return answer(ctx, site, { leadTo: ctx.url, says: 'One moment …' })
    if (page.caller === 'user' && !signedIn)
      return answer(ctx, site, { goTo: `/login?next=${encodeURIComponent(page.method === 'GET' ? ctx.url : '/')}` })
    if (mustRenew(ctx) && !page.arrival) return goAndRenew(ctx)
    try {
      return answer(ctx, site, await page.handle(await startVisit(ctx, site)))
    } catch (error) {
      if (error instanceof SignInOver) return goAndRenew(ctx)
      throw error
    }
  })
}

/** To where the refresh token's cookie goes, and back here with the same method and form. */
function goAndRenew(ctx: Context): void {
  ctx.status = 307
  ctx.set('Location', `${refreshPath}/return?to=${encodeURIComponent(ctx.url)}`)
  ctx.body = ''
}

const backendForFrontend =
  (site: Site): Middleware =>
  async (ctx, next) => {
    if (!ctx.path.startsWith('/api/')) return next()
    const forwarded = await forward(ctx, visitorOf(ctx), site)
    ctx.status = forwarded.status
    ctx.set(forwarded.headers)
    setCookies(ctx, forwarded.cookies)
    ctx.body = Buffer.from(forwarded.body)
    if (forwarded.body.length === 0) ctx.status = forwarded.status
  }

function answer(ctx: Context, { assets }: Site, reply: PageAnswer): void {
  setCookies(ctx, reply.cookies ?? [])
  const signedIn = isSignedIn(ctx)
  if ('goTo' in reply) {
    ctx.status = 303
    ctx.set('Location', reply.goTo)
    ctx.body = ''
  } else if ('leadTo' in reply) {
    ctx.type = 'html'
    const frame = { assets, title: 'One moment', isSignedIn: false, leadTo: reply.leadTo }
    ctx.body = html(frame, leadingPage(reply.says, reply.leadTo))
  } else {
    ctx.status = reply.status ?? 200
    ctx.type = 'html'
    const { title, scripts } = reply
    ctx.body = html({ assets, title, isSignedIn: signedIn, scripts }, reply.page as VNode)
  }
}

const answerProblems =
  (site: Site): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const kind = error instanceof ApiAway ? 'away' : error instanceof BodyTooLarge ? 'too_large' : 'broken'
      if (kind === 'broken') site.log.error({ err: error, method: ctx.method }, 'a page failed')
      if (ctx.path.startsWith('/api/')) answerJson(ctx, jsonProblems[kind])
      else answer(ctx, site, problemPage(kind))
      if (kind === 'away') ctx.set('Retry-After', '2')
      if (kind === 'too_large') ctx.set('Connection', 'close')
    }
  }

const jsonProblems = {
  away: [503, 'temporarily_unavailable', 'The service is not available for a moment: try again.'],
  too_large: [413, 'payload_too_large', 'The request body is too large.'],
  broken: [500, 'internal_error', 'Something went wrong on our side.'],
} as const

function answerJson(ctx: Context, [status, code, message]: readonly [number, string, string]): void {
  ctx.status = status
  ctx.body = { error: { code, message } }
}
