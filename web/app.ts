/** The site's HTTP application: what happens to every request before and after its page. */
import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import type { VNode } from 'preact'
import type { SiteConfig } from '../platform/config/site.ts'
import type { Logger } from '../platform/log.ts'
import { type Api, ApiUnavailableError } from './api.ts'
import type { Assets } from './assets.ts'
import { forward } from './backend-for-frontend.ts'
import { setCookies, signOutCookies } from './cookies.ts'
import { html } from './document.tsx'
import { localPath } from './local-path.ts'
import type { PageResult, PageRoute } from './page.ts'
import { leadingPage, problemPage } from './pages/problem.tsx'
import { pages } from './pages.ts'
import { isRecentlyRenewed, redirectToRenewal, renew, renewalPath } from './renewal.ts'
import { BodyTooLargeError, InvalidFormEncodingError, RequestAbortedError } from './request-body.ts'
import { isCrossOriginWrite, isCrossSiteNavigation } from './same-origin.ts'
import { securityHeaders } from './security-headers.ts'
import type { TokenRefresher } from './token-refresh.ts'
import { createVisit, hasExpiredAccessToken, isSignedIn, SignInExpiredError, visitorOf } from './visit.ts'

export interface Site {
  readonly config: SiteConfig
  readonly log: Logger
  readonly api: Api
  readonly assets: Assets
  readonly tokenRefresher: TokenRefresher
  /** Whether the process was asked to end, and still answers so that load balancers notice. */
  readonly isDraining: () => boolean
}

export function createApp(site: Site): Koa {
  const { trustedProxyHops } = site.config
  const app = new Koa({ proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops })
  app.silent = true
  app.use(securityHeaders(site.config))
  app.use(answerProblems(site))
  app.use(refuseUnreadable(site))
  app.use(serveAssets(site.assets))
  app.use(refuseWritesFromElsewhere(site))
  const router = new Router({ sensitive: true, strict: true })
  router.get('/livez', (ctx) => {
    ctx.body = { status: 'ok' }
  })
  // Ready without the api too: then the site's own page says what is the matter, which no other process would do better.
  router.get('/readyz', (ctx) => {
    ctx.status = site.isDraining() ? 503 : 200
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status: site.isDraining() ? 'draining' : 'ready' }
  })
  router.register(renewalPath, ['GET', 'POST'], (ctx) => renew(ctx, site))
  for (const page of pages) mount(router, page, site)
  app.use(router.routes())
  app.use(backendForFrontend(site))
  app.use(refuseUnknown(site, router))
  return app
}

/** An address that is no path of ours by its looks: a proxy's request, or one that can't be read. */
const refuseUnreadable =
  (site: Site): Middleware =>
  (ctx, next) =>
    ctx.url.startsWith('/') && URL.canParse(`http://site.invalid${ctx.url}`)
      ? next()
      : answer(ctx, site, { ...problemPage('not_found'), status: 400 })

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
function refuseWritesFromElsewhere(site: Site): Middleware {
  const { origin } = new URL(site.config.siteUrl)
  return (ctx, next) => {
    if (!isCrossOriginWrite(ctx, origin)) return next()
    if (isForScripts(ctx)) return answerJson(ctx, [403, 'forbidden', 'This was sent from another site.'])
    return answer(ctx, site, problemPage('forbidden'))
  }
}

/** Who reads the answer: a page's script, or a person. */
const isForScripts = (ctx: Context): boolean => ctx.path.startsWith('/api/') && ctx.path !== renewalPath

/** One page in its order: who comes from where, whether their sign-in has to be renewed first, and only then the page. */
function mount(router: Router, page: PageRoute, site: Site): void {
  router.register(page.path, [page.method], async (ctx) => {
    const signedIn = isSignedIn(ctx)
    // Strict cookies don't come along from elsewhere. A step of our own fetches them, or a signed-in person seems a stranger.
    if (!signedIn && !page.allowsCrossSiteEntry && isCrossSiteNavigation(ctx))
      return answer(ctx, site, { continueTo: localPath(ctx.url, '/'), message: 'One moment …' })
    if (page.caller === 'user' && !signedIn) {
      // Browsers drop cookies one by one: the refresh token's may still be there.
      if (page.method === 'GET' && !isRecentlyRenewed(ctx)) return redirectToRenewal(ctx)
      return answer(ctx, site, { redirectTo: loginPath(page, ctx) })
    }
    if (hasExpiredAccessToken(ctx) && !page.allowsCrossSiteEntry && !isRecentlyRenewed(ctx))
      return redirectToRenewal(ctx)
    try {
      return answer(ctx, site, await page.handle(await createVisit(ctx, site)))
    } catch (error) {
      if (!(error instanceof SignInExpiredError)) throw error
      if (!isRecentlyRenewed(ctx)) return redirectToRenewal(ctx)
      return answer(ctx, site, {
        redirectTo: page.caller === 'user' ? loginPath(page, ctx) : '/login',
        cookies: signOutCookies,
      })
    }
  })
}

/** The login page, and from there back to the page, or to that of the form, which has to be sent again. */
const loginPath = (page: PageRoute, ctx: Context): string =>
  `/login?next=${encodeURIComponent(page.method === 'GET' ? ctx.url : (page.returnTo ?? '/'))}`

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

function answer(ctx: Context, { assets }: Site, reply: PageResult): void {
  setCookies(ctx, reply.cookies ?? [])
  const signedIn = isSignedIn(ctx)
  if ('redirectTo' in reply) {
    ctx.status = 303
    ctx.set('Location', reply.redirectTo)
    ctx.body = ''
  } else if ('continueTo' in reply) {
    ctx.type = 'html'
    const frame = { assets, title: 'One moment', isSignedIn: false, continueTo: reply.continueTo }
    ctx.body = html(frame, leadingPage(reply.message, reply.continueTo))
  } else {
    ctx.status = reply.status ?? 200
    ctx.type = 'html'
    const { title, scripts } = reply
    ctx.body = html({ assets, title, isSignedIn: signedIn, scripts }, reply.page as VNode)
  }
}

/** A known page asked by another method is told so, everything else is unknown. */
const refuseUnknown =
  (site: Site, router: Router): Middleware =>
  (ctx) => {
    const allowed = new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods))
    if (allowed.size > 0) ctx.set('Allow', [...allowed].sort().join(', '))
    answer(ctx, site, { ...problemPage('not_found'), status: allowed.size > 0 ? 405 : 404 })
  }

const answerProblems =
  (site: Site): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      // Nobody is there any more to be answered.
      if (error instanceof RequestAbortedError) return
      const kind = problemKind(error)
      if (kind === 'broken') site.log.error({ err: error, method: ctx.method }, 'a page failed')
      if (kind === 'away')
        site.log.warn({ err: error, method: ctx.method }, 'the API did not answer a page as it should')
      if (isForScripts(ctx)) answerJson(ctx, jsonProblems[kind])
      else answer(ctx, site, problemPage(kind))
      if (kind === 'away') ctx.set('Retry-After', '2')
    }
  }

function problemKind(error: unknown): keyof typeof jsonProblems {
  if (error instanceof ApiUnavailableError) return 'away'
  if (error instanceof BodyTooLargeError) return 'too_large'
  return error instanceof InvalidFormEncodingError ? 'unreadable' : 'broken'
}

const jsonProblems = {
  unreadable: [400, 'invalid_request', 'The request body is not valid UTF-8.'],
  away: [503, 'temporarily_unavailable', 'The service is not available for a moment: try again.'],
  too_large: [413, 'payload_too_large', 'The request body is too large.'],
  broken: [500, 'internal_error', 'Something went wrong on our side.'],
} as const

function answerJson(ctx: Context, [status, code, message]: readonly [number, string, string]): void {
  ctx.status = status
  ctx.body = { error: { code, message } }
}
