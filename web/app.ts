/** The site's HTTP application: the middleware around every page. */
import { Router } from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import compress from 'koa-compress'
import { isApiFailure } from '../client/api-error.ts'
import type { SiteConfig } from '../platform/config/site.ts'
import { isUpgrade } from '../platform/http-upgrades.ts'
import { findAllowedMethods } from '../platform/koa/allowed-methods.ts'
import { createKoa } from '../platform/koa/client-address.ts'
import { BodyTooLargeError, IncompleteBodyError } from '../platform/koa/request-body.ts'
import type { Logger } from '../platform/log.ts'
import type { Api } from './api.ts'
import { addReferenceFileRoutes, addSourceDocumentRoute } from './api-reference.ts'
import type { Assets } from './assets.ts'
import { type ForwardedReply, forwardToApi } from './backend-for-frontend.ts'
import { readAccessToken, setCookies, signOutCookies } from './cookies.ts'
import { renderDocument } from './document.tsx'
import { addDownloadRoutes } from './downloads.ts'
import { addIncidentFeedRoute } from './incident-feed.ts'
import { localPath } from './local-path.ts'
import { renderConsole } from './operator/console-document.tsx'
import { isConsolePath, openOperatorPage, problemPageFor } from './operator-access.ts'
import type { PageResult, PageRoute } from './page.ts'
import { forwardingPage, type ProblemKind, problemPage } from './pages/problem.tsx'
import { cookiesRefusedPage, isOtherAddress, otherAddressPage } from './pages/site-address.tsx'
import { pages } from './pages.ts'
import { isRecentlyRenewed, redirectToRenewal, renewalPath, renewSignIn } from './renewal.ts'
import { InvalidFormEncodingError } from './request-body.ts'
import { isCrossOriginWrite, isCrossSiteNavigation, isFromPageOf } from './same-origin.ts'
import { allowConnectionsTo, policyName, securityHeaders } from './security-headers.ts'
import { type SocketForwarder, socketPath } from './socket-forwarding.ts'
import type { TokenRefresher } from './token-refresh.ts'
import { createVisit, hasExpiredAccessToken, isSignedIn, SignInExpiredError, visitorOf } from './visit.ts'

export interface Site {
  readonly config: SiteConfig
  readonly log: Logger
  readonly api: Api
  readonly assets: Assets
  readonly tokenRefresher: TokenRefresher
  readonly socketForwarder: SocketForwarder
  /** Whether the process is shutting down but still serves requests until load balancers have removed it. */
  readonly isDraining: () => boolean
}

export function createApp(site: Site): Koa {
  const app = createKoa(site.config.trustedProxyHops, site.log)
  app.use(securityHeaders(site.config))
  // Assets are compressed at start, and replies of the API contain tokens beside texts that others may choose.
  app.use(compress({ filter: (type) => type === 'text/html' }))
  app.use(hideConsole)
  app.use(handleErrors(site))
  app.use(refuseInvalidUrls(site))
  app.use(serveAssets(site.assets))
  app.use(refuseCrossOriginWrites(site))
  const router = new Router({ sensitive: true, strict: true })
  router.get('/livez', (ctx) => {
    ctx.body = { status: 'ok' }
  })
  // Ready without the API too: every process would lack it, and the site's own error page explains the outage best.
  router.get('/readyz', (ctx) => {
    ctx.status = site.isDraining() ? 503 : 200
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status: site.isDraining() ? 'draining' : 'ready' }
  })
  router.register(renewalPath, ['GET', 'POST'], async (ctx) => {
    const retryPath = await renewSignIn(ctx, site)
    if (retryPath !== undefined) sendResult(ctx, site, cookiesRefusedPage(placeOf(ctx, site), retryPath))
  })
  addReferenceFileRoutes(router, site.config.apiUrl)
  addSourceDocumentRoute(router, site.config.apiUrl)
  addDownloadRoutes(router, site.config.siteUrl)
  addIncidentFeedRoute(router, site)
  for (const page of pages) mountPage(router, page, site)
  app.use(router.routes())
  app.use(serveSocket(site))
  app.use(serveApi(site))
  app.use(refuseUnknownPaths(site, router))
  return app
}

/** Keeps the operator console out of search engines. */
const hideConsole: Middleware = (ctx, next) => {
  if (isConsolePath(ctx.path)) ctx.set('X-Robots-Tag', 'noindex, nofollow')
  return next()
}

/** Refuses request targets that are not a path, such as a proxy's, or that cannot be parsed. */
const refuseInvalidUrls =
  (site: Site): Middleware =>
  (ctx, next) =>
    ctx.url.startsWith('/') && URL.canParse(`http://site.invalid${ctx.url}`)
      ? next()
      : sendResult(ctx, site, { ...problemPage('not_found'), status: 400 })

const serveAssets =
  (assets: Assets): Middleware =>
  (ctx, next) => {
    const asset = ctx.method === 'GET' || ctx.method === 'HEAD' ? assets.at(ctx.path) : undefined
    if (!asset) return next()
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable')
    ctx.type = asset.type
    ctx.vary('Accept-Encoding')
    // Chats and other sites show it beside a link.
    if (asset.type === 'image/png') ctx.set('Cross-Origin-Resource-Policy', 'cross-origin')
    const { compressed } = asset
    if (compressed && ctx.acceptsEncodings('br', 'identity') === 'br') {
      ctx.set('Content-Encoding', 'br')
      ctx.body = compressed
    } else ctx.body = asset.bytes
  }

/** CSRF protection: only pages of this site may send requests that change something. */
function refuseCrossOriginWrites(site: Site): Middleware {
  const { origin } = new URL(site.config.siteUrl)
  return (ctx, next) => {
    if (!isCrossOriginWrite(ctx, origin)) return next()
    if (isApiPath(ctx)) return sendJsonError(ctx, [403, 'forbidden', 'Cross-origin requests are not allowed.'])
    // Browsers send no Fetch Metadata to http: addresses, so a page of this site at another address is known by its
    // host.
    const place = placeOf(ctx, site)
    const isOwnPage = isOtherAddress(place) && ctx.get('origin') === `${ctx.protocol}://${place.host}`
    return sendResult(ctx, site, isOwnPage ? otherAddressPage(place) : problemPageFor(ctx, 'forbidden'))
  }
}

const placeOf = (ctx: Context, { config }: Site) => ({ origin: new URL(config.siteUrl).origin, host: ctx.host })

/** Whether a script reads the reply, and not a person. */
const isApiPath = (ctx: Context): boolean => ctx.path.startsWith('/api/') && ctx.path !== renewalPath

/** Runs a page after the checks of where the request comes from and whether its sign-in must be renewed first. */
function mountPage(router: Router, page: PageRoute, site: Site): void {
  router.register(page.path, [page.method], async (ctx) => {
    if (page.caller === 'operator') return sendResult(ctx, site, await openOperatorPage(ctx, page, site))
    const signedIn = isSignedIn(ctx)
    // A cross-site navigation sends no Strict cookies. Forwarding to the same page makes the next request send them.
    if (!signedIn && !page.allowsCrossSiteEntry && isCrossSiteNavigation(ctx))
      return sendResult(ctx, site, { continueTo: localPath(ctx.url, '/'), message: 'Loading…' })
    if (page.caller === 'user' && !signedIn) {
      // The refresh token's cookie may exist without the access token's.
      if (page.method === 'GET' && !isRecentlyRenewed(ctx)) return redirectToRenewal(ctx)
      return sendResult(ctx, site, { redirectTo: loginPath(page, ctx) })
    }
    if (hasExpiredAccessToken(ctx) && !page.allowsCrossSiteEntry && !isRecentlyRenewed(ctx))
      return redirectToRenewal(ctx)
    try {
      return sendResult(ctx, site, await page.handle(await createVisit(ctx, site, page)))
    } catch (error) {
      if (!(error instanceof SignInExpiredError)) throw error
      if (!isRecentlyRenewed(ctx)) return redirectToRenewal(ctx)
      const redirectTo = page.caller === 'user' ? loginPath(page, ctx) : '/login'
      return sendResult(ctx, site, { redirectTo, cookies: signOutCookies })
    }
  })
}

/** The login page, which leads back to this page, or after a POST to the page that has its form. */
const loginPath = (page: PageRoute, ctx: Context): string =>
  `/login?next=${encodeURIComponent(page.method === 'GET' ? ctx.url : (page.returnTo ?? '/'))}`

const serveApi =
  (site: Site): Middleware =>
  async (ctx, next) => {
    if (!ctx.path.startsWith('/api/')) return next()
    sendReply(ctx, await forwardToApi(ctx, visitorOf(ctx), site))
  }

function sendReply(ctx: Context, reply: ForwardedReply): void {
  ctx.status = reply.status
  ctx.set(reply.headers)
  setCookies(ctx, reply.cookies)
  ctx.body = Buffer.from(reply.body)
  // Koa sets 200 with a body.
  if (reply.body.length === 0) ctx.status = reply.status
}

/** WebSockets of this site's pages. Browsers let any page open one, with the cookies of this site in some cases. */
function serveSocket(site: Site): Middleware {
  const { origin } = new URL(site.config.siteUrl)
  return async (ctx, next) => {
    if (ctx.path !== socketPath || !isUpgrade(ctx.req)) return next()
    if (!isFromPageOf(ctx, origin))
      return sendJsonError(ctx, [403, 'forbidden', 'Cross-origin requests are not allowed.'])
    const bearer = readAccessToken(ctx)
    if (!bearer) return sendJsonError(ctx, [401, 'unauthorized', 'You are signed out. Sign in again.'])
    const refusal = await site.socketForwarder.forward(ctx.req, { visitor: visitorOf(ctx), bearer })
    if (refusal) sendReply(ctx, refusal)
    // The connection is no longer HTTP.
    else ctx.respond = false
  }
}

function sendResult(ctx: Context, { assets, config }: Site, result: PageResult): void {
  const { brandName, legal, mailbox: hasMailbox, siteUrl } = config
  setCookies(ctx, result.cookies ?? [])
  if ('redirectTo' in result) {
    ctx.status = 303
    ctx.set('Location', result.redirectTo)
    ctx.body = ''
  } else if ('continueTo' in result) {
    const { continueTo, message } = result
    ctx.type = 'html'
    const frame = { name: 'forwarding', title: 'Redirecting', isSignedIn: false, continueTo }
    ctx.body = renderDocument(
      { assets, brandName, hasMailbox, legal, siteUrl, ...frame },
      forwardingPage(message, continueTo),
    )
  } else if ('download' in result) {
    const { fileName, contentType, content, isShown } = result.download
    ctx.set('Content-Disposition', `${isShown ? 'inline' : 'attachment'}; filename="${fileName}"`)
    ctx.type = contentType
    ctx.body = content
  } else if ('rendered' in result) {
    ctx.set(policyName, result.rendered.contentSecurityPolicy)
    ctx.type = 'html'
    ctx.body = result.rendered.html
  } else {
    const { status = 200, page, retryAfterSeconds, connectTo = [], console: section, ...frame } = result
    allowConnectionsTo(ctx, connectTo)
    if (frame.isUnlisted) ctx.set('X-Robots-Tag', 'noindex')
    ctx.status = status
    ctx.type = 'html'
    if (retryAfterSeconds !== undefined && ctx.method === 'GET') ctx.set('Refresh', String(retryAfterSeconds))
    const isShownSignedIn = isSignedIn(ctx) && !frame.isUnlisted
    ctx.body = section
      ? renderConsole({ assets, brandName, ...frame, section }, page)
      : renderDocument({ assets, brandName, hasMailbox, legal, siteUrl, isSignedIn: isShownSignedIn, ...frame }, page)
  }
}

/** Replies 405 with the allowed methods for a known path, and 404 for any other. */
const refuseUnknownPaths =
  (site: Site, router: Router): Middleware =>
  (ctx) => {
    const allowed = findAllowedMethods(ctx, [router])
    if (allowed.length > 0) ctx.set('Allow', allowed.join(', '))
    sendResult(ctx, site, { ...problemPageFor(ctx, 'not_found'), status: allowed.length > 0 ? 405 : 404 })
  }

const handleErrors =
  (site: Site): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      // The connection is closed, so no reply can be sent.
      if (error instanceof IncompleteBodyError) return
      const kind = problemKind(error)
      if (kind === 'broken') site.log.error({ err: error, method: ctx.method }, 'page failed')
      if (kind === 'away') site.log.warn({ err: error, method: ctx.method }, 'API unavailable')
      if (isApiPath(ctx)) sendJsonError(ctx, jsonErrors[kind])
      else sendResult(ctx, site, problemPageFor(ctx, kind))
      if (kind === 'away') ctx.set('Retry-After', '2')
    }
  }

function problemKind(error: unknown): keyof typeof jsonErrors {
  if (isApiFailure(error)) return 'away'
  if (error instanceof BodyTooLargeError) return 'too_large'
  return error instanceof InvalidFormEncodingError ? 'unreadable' : 'broken'
}

type JsonError = readonly [status: number, code: string, message: string]

const jsonErrors = {
  unreadable: [400, 'invalid_request', 'The request body is not valid UTF-8.'],
  away: [503, 'temporarily_unavailable', 'The service is temporarily unavailable. Try again.'],
  too_large: [413, 'payload_too_large', 'The request body is too large.'],
  broken: [500, 'internal_error', 'Something went wrong on our side.'],
} as const satisfies Partial<Record<ProblemKind, JsonError>>

function sendJsonError(ctx: Context, [status, code, message]: JsonError): void {
  ctx.status = status
  ctx.body = { error: { code, message } }
}
