/** The IP address of the client, behind a known number of proxies. */
import { createHash } from 'node:crypto'
import { isIP, isIPv4, isIPv6 } from 'node:net'
import Koa, { type Context } from 'koa'
import type { Logger } from '../log.ts'

/** Applications whose proxy has written an entry that is no address, each of which is logged once. */
const warned = new WeakSet<Koa>()
const logs = new WeakMap<Koa, Logger>()

/** @param trustedProxyHops how many entries of `X-Forwarded-For` are believed, counted from the right. */
export function createKoa(trustedProxyHops: number, log: Logger): Koa {
  const app = new Koa({ proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops })
  app.silent = true
  logs.set(app, log)
  return app
}

/**
 * The address that the trusted proxies report, or the peer's. IPv4 addresses that are mapped to IPv6 become plain IPv4.
 */
export function clientAddress(ctx: Pick<Context, 'app' | 'ips' | 'req'>): string {
  const peer = ctx.req.socket.remoteAddress ?? '0.0.0.0'
  const [entry] = ctx.app.proxy ? ctx.ips : []
  const address = entry ? (parseForwardedAddress(entry) ?? opaqueAddress(ctx.app, entry)) : peer
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '')
}

/**
 * The address of an entry as proxies write it, and as RFC 7239 does: quoted, with a port, in brackets. Undefined for
 * `unknown`, an obfuscated identifier, and anything else that is no address.
 */
export function parseForwardedAddress(entry: string): string | undefined {
  const text = entry.replace(/^"(.*)"$/, '$1').replace(/^for=/i, '')
  const bracketed = /^\[([^\]]+)\](?::\w+)?$/.exec(text)?.[1]
  if (bracketed !== undefined) return isIPv6(bracketed) ? bracketed : undefined
  if (isIP(text)) return text
  const withPort = /^([\d.]+):\w+$/.exec(text)?.[1]
  return withPort !== undefined && isIPv4(withPort) ? withPort : undefined
}

/**
 * An address of the range for private use (fc00::/7) that stands for the entry, so that limits by address and by
 * network hold for the clients that the proxy names so. The peer's address would be the proxy's, and would count all
 * clients together.
 */
function opaqueAddress(app: Koa, entry: string): string {
  if (!warned.has(app)) {
    warned.add(app)
    logs
      .get(app)
      ?.warn({ entry: entry.slice(0, 100) }, 'the proxy wrote an entry of X-Forwarded-For that is no address')
  }
  const groups =
    createHash('sha256')
      .update(entry)
      .digest('hex')
      .slice(0, 30)
      .match(/.{1,4}/g) ?? []
  return ['fd00', ...groups.slice(0, 7)].join(':')
}
