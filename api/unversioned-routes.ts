/** Routes outside `/api/v1`: health checks, metrics, documentation, and the program of relays. */
import { Router } from '@koa/router'
import type { Context } from 'koa'
import type { Registry } from 'prom-client'
import { listRelayPrograms } from '../db/fleet/relay-programs.ts'
import { countAliveWorkers } from '../db/operations/workers.ts'
import { countUndeliveredCommands } from '../db/relay/commands.ts'
import { clientAddress } from '../platform/koa/client-address.ts'
import { memoizeWithTtl } from '../platform/memoize-with-ttl.ts'
import { isTemporalReachable, oldestTaskSeconds } from '../platform/temporal.ts'
import { relayBundle } from '../providers/relay/relay-bundle.ts'
import { issuerPath, sourceDocumentOf, sourceDocumentPath } from './apps/app-addresses.ts'
import type { AppProvider } from './apps/provider.ts'
import { clientNetwork } from './http/ip-networks.ts'
import { Refusal } from './http/refusals.ts'
import { addHeaders, setHeaders } from './http/responses.ts'
import { renderMetrics } from './metrics/metrics-endpoint.ts'
import { openapiDocument } from './openapi/document.ts'
import { addPageRoutes } from './openapi/page-routes.ts'
import type { Route } from './routes/route.ts'
import type { Services } from './services.ts'

const checkMillisMax = 1500
/**
 * Tasks and commands that wait for longer are not taken, or their workers die of them: a living worker takes them at
 * once.
 */
const waitSecondsMax = 30
/** An instance that asks for its program earlier asks again. */
const programsTtlMillis = 5000

interface Deps {
  readonly services: Services
  readonly registry: Registry
  readonly routes: readonly Route[]
  /** True once the database migrations have run. */
  readonly isReady: () => boolean
  /** True while the process shuts down and still serves requests until load balancers have noticed. */
  readonly isDraining: () => boolean
}

export function createUnversionedRoutes({ services, registry, routes, isReady, isDraining }: Deps): Router {
  const router = new Router()

  router.get('/livez', (ctx) => {
    ctx.body = { status: 'ok' }
  })

  // For load balancers. An outage of Temporal or Postgres does not change it, since it affects every replica equally.
  router.get('/readyz', (ctx) => {
    const status = isDraining() ? 'draining' : isReady() ? 'ready' : 'starting'
    ctx.status = status === 'ready' ? 200 : 503
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status }
  })

  // Concurrent requests share one check, since it needs no authentication and makes five calls.
  const checkHealthOnce = memoizeWithTtl(0, () => checkHealth(services, isReady))

  router.get('/health', async (ctx) => {
    const checks = await checkHealthOnce()
    const isHealthy = Object.values(checks).every((check) => check === 'ok')
    ctx.status = isHealthy ? 200 : 503
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status: isHealthy ? 'ok' : 'failing', checks }
  })

  router.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType
    ctx.body = await renderMetrics(services, registry)
  })

  addPageRoutes(router, services.config, () => openapiDocument(routes, services.config.apiUrl))

  // For instances that start. A program contains no secret, and its name changes with its content. One read of the
  // database serves the requests of some seconds, since anybody may ask for any name.
  const readPrograms = memoizeWithTtl(programsTtlMillis, () => listRelayPrograms(services.sql))
  router.get('/relay-node/:fileName', async (ctx) => {
    const isAsked = ({ fileName }: { readonly fileName: string }) => fileName === ctx.params.fileName
    const own = await relayBundle()
    // Those of other versions, whose workers may run beside this api.
    const program = isAsked(own) ? own : (await readPrograms()).find(isAsked)
    if (!program) throw new Refusal('not_found')
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable')
    ctx.type = 'text/javascript'
    ctx.body = program.code
  })

  addAppRoutes(router, services, isReady)
  return router
}

/** The endpoints of oidc-provider that apps use. Without a provider none of them exists. */
function addAppRoutes(router: Router, { appProvider, config, rateLimits }: Services, isReady: () => boolean): void {
  if (!appProvider) return
  const sourceDocument = sourceDocumentOf(config)
  router.get(sourceDocumentPath, (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=300')
    ctx.body = sourceDocument
  })
  const serve = (provider: AppProvider, limit?: 'app_authorize' | 'app_token') => async (ctx: Context) => {
    if (!isReady()) throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
    if (limit) addHeaders(ctx, await rateLimits.count(limit, clientNetwork(clientAddress(ctx))))
    setHeaders(ctx)
    await provider.handle(ctx)
  }
  for (const document of ['openid-configuration', 'oauth-authorization-server'])
    router.get(`${issuerPath}/.well-known/${document}`, serve(appProvider))
  router.get(`${issuerPath}/jwks`, serve(appProvider))
  router.get(`${issuerPath}/auth`, serve(appProvider, 'app_authorize'))
  router.get(`${issuerPath}/auth/:id`, serve(appProvider, 'app_authorize'))
  router.post(`${issuerPath}/token`, serve(appProvider, 'app_token'))
  router.post(`${issuerPath}/token/revocation`, serve(appProvider, 'app_token'))
}

type Check = 'ok' | 'failing'

async function checkHealth(
  { sql, temporal, config }: Services,
  isReady: () => boolean,
): Promise<Record<'postgres' | 'temporal' | 'worker' | 'tasks', Check>> {
  const [postgres, server, worker, tasks, commands] = await Promise.all([
    succeedsInTime(sql`select 1`.then(isReady)),
    isTemporalReachable(temporal, checkMillisMax),
    succeedsInTime(countAliveWorkers(sql).then((alive) => alive > 0)),
    succeedsInTime(oldestTaskSeconds(temporal, config.temporal, checkMillisMax).then((age) => age <= waitSecondsMax)),
    succeedsInTime(countUndeliveredCommands(sql).then(({ oldestSeconds }) => oldestSeconds <= waitSecondsMax)),
  ])
  const toCheck = (isHealthy: boolean): Check => (isHealthy ? 'ok' : 'failing')
  return {
    postgres: toCheck(postgres),
    temporal: toCheck(server),
    worker: toCheck(worker),
    tasks: toCheck(tasks && commands),
  }
}

async function succeedsInTime(check: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), checkMillisMax)
  })
  try {
    return await Promise.race([check.catch(() => false), timeout])
  } finally {
    clearTimeout(timer)
  }
}
