/**
 * The methods that the routes of a request's path accept, for replies with 405; none for an unknown path. A route with
 * exactly this path hides those that match it with a parameter, as OpenAPI defines it.
 */
import type { Router } from '@koa/router'
import type { Context } from 'koa'

export function findAllowedMethods(ctx: Pick<Context, 'path' | 'method'>, routers: readonly Router[]): string[] {
  const layers = routers.flatMap((router) => router.match(ctx.path, ctx.method).path)
  const exact = layers.filter(({ path }) => path === ctx.path)
  return [...new Set((exact.length > 0 ? exact : layers).flatMap((layer) => layer.methods))].sort()
}
