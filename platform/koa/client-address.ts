/** The IP address of the client, behind a known number of proxies. */
import { isIP } from 'node:net'
import Koa, { type Context } from 'koa'

/** @param trustedProxyHops how many entries of `X-Forwarded-For` are believed, counted from the right. */
export function createKoa(trustedProxyHops: number): Koa {
  const app = new Koa({ proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops })
  app.silent = true
  return app
}

/** The address that the trusted proxies report, or the peer's. IPv4 addresses that are mapped to IPv6 become plain IPv4. */
export function clientAddress(ctx: Pick<Context, 'app' | 'ip' | 'req'>): string {
  const peer = ctx.req.socket.remoteAddress ?? '0.0.0.0'
  const address = ctx.app.proxy && isIP(ctx.ip) ? ctx.ip : peer
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '')
}
