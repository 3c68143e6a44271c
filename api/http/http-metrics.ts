/** Metrics of the HTTP requests that this process has answered. */
import type { Context } from 'koa'
import { Counter, Histogram, type Registry } from 'prom-client'

export interface HttpMetrics {
  observe(request: { method: string; route: string; status: number; seconds: number }): void
}

export function createHttpMetrics(registry: Registry): HttpMetrics {
  const requests = new Counter({
    name: 'svc_http_requests_total',
    help: 'Completed requests by route template.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  })
  const seconds = new Histogram({
    name: 'svc_http_request_duration_seconds',
    help: 'Duration of requests by route template.',
    labelNames: ['method', 'route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  })
  return {
    observe: (request) => {
      const method = knownMethods.has(request.method) ? request.method : 'other'
      requests.inc({ method, route: request.route, status: String(request.status) })
      seconds.observe({ method, route: request.route }, request.seconds)
    },
  }
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Paths without a route share one label: clients could create any number of labels otherwise. */
export const routeTemplate = (ctx: Context): string =>
  typeof ctx._matchedRoute === 'string' ? ctx._matchedRoute : 'unmatched'
