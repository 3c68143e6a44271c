/**
 * The provider for apps: oidc-provider behind the addresses of {@link issuerOf}. Requests that exchange tokens are
 * transactions, so that a token is replaced together with the storage of its successor, or not at all.
 */
import type { Context, Middleware } from 'koa'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { type Database, isOutage } from '../../db/connection.ts'
import type { GrantEndReason } from '../../db/identity/app-grants.ts'
import type { Config } from '../../platform/config/config.ts'
import { clientAddress } from '../../platform/koa/client-address.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { issuerOf, issuerPath, requestPageOf } from './app-addresses.ts'
import { takeDecision } from './app-requests.ts'
import { createProviderConfiguration, requestCookie } from './provider-configuration.ts'
import { type ProviderContext, runInContext } from './provider-context.ts'
import { showErrorPage } from './provider-errors.ts'
import { loadProviderLibrary } from './provider-library.ts'
import type { TokenMetrics } from './token-metrics.ts'

interface Deps {
  readonly config: Config
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  readonly metrics: TokenMetrics
}

export interface AppProvider {
  /** Answers a request to an endpoint below {@link issuerPath}. */
  handle(ctx: Context): Promise<void>
}

/** @returns undefined where no apps can be connected. */
export async function createAppProvider(deps: Deps): Promise<AppProvider | undefined> {
  const { config, sealing } = deps
  if (config.apps === null) return undefined
  const library = await loadProviderLibrary()
  const issuer = issuerOf(config)
  const provider = new library.Provider(issuer, createProviderConfiguration(library, config, config.apps, sealing))
  // The addresses in replies are those of the configuration, whatever a client sends.
  provider.proxy = true
  useMiddleware(provider, deps)
  const answer = provider.callback()
  const { host, protocol, pathname } = new URL(issuer)
  const basePath = pathname.slice(0, -issuerPath.length)
  return {
    handle: async (ctx) => {
      const { req, res } = ctx
      origins.set(req, { ip: clientAddress(ctx), userAgent: ctx.get('user-agent').slice(0, 256) })
      Object.assign(req.headers, { host, 'x-forwarded-host': host, 'x-forwarded-proto': protocol.slice(0, -1) })
      const { url = '' } = req
      Object.assign(req, { originalUrl: basePath + url, url: url.slice(issuerPath.length) })
      ctx.respond = false
      await answer(req, res)
    },
  }
}

/** Where each request comes from, as the application in front of the provider found out. */
const origins = new WeakMap<object, Pick<ProviderContext, 'ip' | 'userAgent'>>()

function useMiddleware(provider: Provider, deps: Deps): void {
  const failures = new WeakMap<object, unknown>()
  provider.on('server_error', (ctx: KoaContextWithOIDC, error: Error) => failures.set(ctx.req, error))
  provider.use(answerFailures(deps, failures))
  provider.use(keepRequestCookieOnly)
  provider.use(encodeSpaces)
  provider.use(countTokenRequests(deps.metrics))
  provider.use(provideContext(deps))
}

/** An outage is no refusal: clients sign out for `invalid_grant` alone and repeat the request otherwise. */
const answerFailures =
  ({ log }: Deps, failures: WeakMap<object, unknown>): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      failures.set(ctx.req, error)
    }
    const error = failures.get(ctx.req)
    if (error === undefined) return
    const isAway = isOutage(error) || error instanceof TooLateError
    if (!isAway) log.error({ err: error }, 'a request of an app failed')
    ctx.status = isAway ? 503 : 500
    ctx.set('Cache-Control', 'no-store')
    if (isAway) ctx.set('Retry-After', '2')
    ctx.body = isAway
      ? { error: 'temporarily_unavailable', error_description: 'The service is temporarily unavailable. Try again.' }
      : { error: 'server_error', error_description: 'Something went wrong on our side.' }
  }

/** The other cookies of the library belong to its sessions, which do not exist, and to pages that it does not have. */
const keepRequestCookieOnly: Middleware = async (ctx, next) => {
  try {
    await next()
  } finally {
    const cookies = [ctx.response.get('Set-Cookie') ?? []].flat() as string[]
    ctx.remove('Set-Cookie')
    const kept = cookies.filter((cookie) => cookie.startsWith(requestCookie))
    if (kept.length > 0) ctx.set('Set-Cookie', kept)
  }
}

/** Apps decode percent signs only, and no `+`. */
const encodeSpaces: Middleware = async (ctx, next) => {
  await next()
  const location = ctx.response.get('Location')
  if (location) ctx.set('Location', location.replaceAll('+', '%20'))
}

const countTokenRequests =
  (metrics: TokenMetrics): Middleware =>
  async (ctx, next) => {
    await next()
    if (ctx.path !== '/token') return
    const { error } = (ctx.body ?? {}) as { error?: string }
    const grantType = (ctx as unknown as KoaContextWithOIDC).oidc?.params?.grant_type
    metrics.count(String(grantType), error ?? 'issued')
  }

const provideContext = (deps: Deps): Middleware => {
  const { sql } = deps
  return (ctx, next) => {
    const origin = origins.get(ctx.req)
    if (!origin) throw new Error('the provider got a request around its application')
    const base = { sql, ...origin, endReason: endReasonOf(ctx.path) }
    const [, requestId] = /^\/auth\/([\w-]+)$/.exec(ctx.path) ?? []
    if (requestId !== undefined) return resume(ctx, next, base, requestId, deps)
    if (!ctx.path.startsWith('/token')) return runInContext(base, next)
    // A refusal may end a grant, which must not be rolled back.
    return inTransaction(sql, base, next, () => ctx.status < 500)
  }
}

const endReasonOf = (path: string): GrantEndReason => (path === '/token' ? 'token_reuse' : 'signed_out')

/** The browser comes back with the decision of its user. Without it the page that asks for it is shown again. */
async function resume(
  ctx: Context,
  next: () => Promise<void>,
  base: ProviderContext,
  requestId: string,
  { sql, sealing, config }: Deps,
): Promise<void> {
  // The library compares the cookie too, with the path that browsers send it to.
  if (ctx.cookies.get(requestCookie, { signed: true }) !== requestId) {
    ctx.status = 400
    return showErrorPage(ctx, config.brandName, 'invalid_request: the request began in another browser')
  }
  const isFinished = () => ctx.response.get('Location') !== ''
  const isDecided = await rollBackUnless(sql, async (tx) => {
    const ticket = String(ctx.query.ticket ?? '')
    const decided = await takeDecision(tx, sealing, { requestId, ticket, ...base })
    if (!decided) return 'undecided'
    await runInContext({ ...base, sql: tx, decided: { requestId, result: decided } }, next)
    return isFinished() ? 'commit' : 'roll_back'
  })
  if (isDecided !== 'undecided') return
  ctx.status = 303
  ctx.redirect(requestPageOf(config, requestId))
}

/** The client has given up by then, and would take the former token for the present one. */
const transactionMillisMax = 4500

class TooLateError extends Error {
  override name = 'TooLateError'
}

async function inTransaction(
  sql: Database,
  base: ProviderContext,
  next: () => Promise<void>,
  isCommitted: () => boolean,
): Promise<void> {
  const startedAt = performance.now()
  await rollBackUnless(sql, async (tx) => {
    await runInContext({ ...base, sql: tx }, next)
    if (performance.now() - startedAt > transactionMillisMax)
      throw new TooLateError('a token was not exchanged before its client had given up')
    return isCommitted() ? 'commit' : 'roll_back'
  })
}

type Outcome = 'commit' | 'roll_back' | 'undecided'

class RolledBack extends Error {
  override name = 'RolledBack'
  constructor(readonly outcome: Outcome) {
    super('the transaction is rolled back')
  }
}

async function rollBackUnless(sql: Database, run: (tx: ProviderContext['sql']) => Promise<Outcome>): Promise<Outcome> {
  try {
    await sql.begin(async (tx) => {
      const outcome = await run(tx)
      if (outcome !== 'commit') throw new RolledBack(outcome)
    })
    return 'commit'
  } catch (error) {
    if (error instanceof RolledBack) return error.outcome
    throw error
  }
}
