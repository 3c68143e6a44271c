/**
 * Dispatches requests to routes. A route without parameters is found by its path in a map; the router, which compares a
 * path with every pattern, serves routes with parameters and lists the methods of a path.
 */
import { Router, type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import type { HandleRoute } from './route-handler.ts'
import type { ServedRoute } from './served-route.ts'

export interface RouteDispatch {
  /** Serves the routes whose paths have no parameters. */
  readonly serveExactPaths: Middleware
  /** Has all routes. */
  readonly router: Router
}

/** @param basePath precedes the path of each route. */
export function createRouteDispatch(
  routes: readonly ServedRoute[],
  basePath: string,
  createHandler: (route: ServedRoute) => HandleRoute,
): RouteDispatch {
  const router = new Router({ prefix: basePath, sensitive: true, strict: true })
  const handlers = new Map<string, HandleRoute>()
  const exactPaths = new Set(routes.map(({ path }) => basePath + path))
  for (const route of routes) {
    const handle = createHandler(route)
    const pattern = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    const hasParameters = pattern !== route.path
    if (!hasParameters)
      for (const method of methodsOf(route)) handlers.set(`${method} ${basePath}${route.path}`, handle)
    router.register(pattern, [route.method], (ctx, next) =>
      // The path is that of another route, which does not support this method.
      hasParameters && exactPaths.has(ctx.path) ? next() : handle(ctx),
    )
  }
  return { router, serveExactPaths: createExactDispatch(handlers) }
}

/** A route for GET serves HEAD too. Node leaves out the body. */
const methodsOf = ({ method }: ServedRoute): readonly string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method])

const createExactDispatch =
  (handlers: ReadonlyMap<string, HandleRoute>): Middleware =>
  (ctx, next) => {
    const handle = handlers.get(`${ctx.method} ${ctx.path}`)
    if (!handle) return next()
    // As the router does it, for the metrics.
    ctx._matchedRoute = ctx.path
    return handle(ctx as RouterContext)
  }
