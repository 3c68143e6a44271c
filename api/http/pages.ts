/** Routes outside the base path: health, metrics and the API documentation. */
import { Router } from '@koa/router'
import type { Registry } from 'prom-client'
import { countAliveWorkers } from '../../db/workers.ts'
import { isTemporalReachable } from '../../platform/temporal.ts'
import type { Services } from '../services.ts'
import { docsPage, docsStyle } from './docs-page.ts'
import { renderMetrics } from './metrics-page.ts'
import { openapiDocument } from './openapi.ts'
import type { Route } from './route.ts'

const checkMillisMax = 1500

interface Needs {
  readonly services: Services
  readonly registry: Registry
  readonly routes: readonly Route[]
  /** Whether the database schema is up to date. */
  readonly isReady: () => boolean
  /** Whether the process is shutting down, and still serves until load balancers have noticed. */
  readonly isDraining: () => boolean
}

export function createPages({ services, registry, routes, isReady, isDraining }: Needs): Router {
  const openapi = openapiDocument(routes, services.config.apiUrl)
  const docs = docsPage(openapi)
  const pages = new Router()

  pages.get('/livez', (ctx) => {
    ctx.body = { status: 'ok' }
  })

  // For load balancers. After the start independent of Temporal and Postgres, since other replicas depend on them too.
  pages.get('/readyz', (ctx) => {
    const status = isDraining() ? 'draining' : isReady() ? 'ready' : 'starting'
    ctx.status = status === 'ready' ? 200 : 503
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status }
  })

  pages.get('/health', async (ctx) => {
    const checks = await checkHealth(services, isReady)
    const isHealthy = Object.values(checks).every((check) => check === 'ok')
    ctx.status = isHealthy ? 200 : 503
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status: isHealthy ? 'ok' : 'failing', checks }
  })

  pages.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType
    ctx.body = await renderMetrics(services, registry)
  })

  pages.get('/openapi.json', (ctx) => {
    ctx.body = openapi
  })

  pages.get('/docs', (ctx) => {
    ctx.set('Content-Security-Policy', "default-src 'none'; style-src 'self'; frame-ancestors 'none'")
    ctx.type = 'html'
    ctx.body = docs
  })

  pages.get('/docs.css', (ctx) => {
    ctx.type = 'css'
    ctx.body = docsStyle
  })

  return pages
}

type Check = 'ok' | 'failing'

async function checkHealth(
  { sql, temporal }: Services,
  isReady: () => boolean,
): Promise<Record<'postgres' | 'temporal' | 'worker', Check>> {
  const [postgres, server, worker] = await Promise.all([
    withinTimeLimit(sql`select 1`.then(isReady)),
    isTemporalReachable(temporal, checkMillisMax),
    withinTimeLimit(countAliveWorkers(sql).then((alive) => alive > 0)),
  ])
  const toCheck = (isHealthy: boolean): Check => (isHealthy ? 'ok' : 'failing')
  return { postgres: toCheck(postgres), temporal: toCheck(server), worker: toCheck(worker) }
}

async function withinTimeLimit(check: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), checkMillisMax)
  })
  try {
    return await Promise.race([check.catch(() => false), late])
  } finally {
    clearTimeout(timer)
  }
}
