/** The methods that the routes of a request's path accept, for replies with 405; none for an unknown path. */
import type { Router } from '@koa/router'
import type { Context } from 'koa'

export function findAllowedMethods(ctx: Pick<Context, 'path' | 'method'>, routers: readonly Router[]): string[] {
  const layers = routers.flatMap((router) => router.match(ctx.path, ctx.method).path)
  return [...new Set(layers.flatMap((layer) => layer.methods))].sort()
}
