/** Wires the site's application to a listener. */
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { SiteConfig } from '../platform/config/site.ts'
import { serveUpgrades } from '../platform/http-upgrades.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import { connectionLimits, listen } from '../platform/listener.ts'
import type { Logger } from '../platform/log.ts'
import { createApi } from './api.ts'
import { createApp } from './app.ts'
import { readAssets } from './assets.ts'
import { createSocketForwarder, socketPath } from './socket-forwarding.ts'
import { createTokenRefresher } from './token-refresh.ts'

interface Deps {
  readonly config: SiteConfig
  readonly log: Logger
  readonly life: Lifecycle
}

/** Resolves once the site listens, whether or not the API is reachable. */
export async function startSite({ config, log, life }: Deps): Promise<{ port: number }> {
  const api = createApi(config.apiUrl)
  const assets = await readAssets()
  const isDraining = () => life.isStopping
  const socketForwarder = createSocketForwarder(config.apiUrl)
  const tokenRefresher = createTokenRefresher(api)
  const handleRequest = createApp({ config, log, api, assets, tokenRefresher, socketForwarder, isDraining }).callback()
  const server = createServer(connectionLimits, handleRequest)
  server.on('clientError', refuseInvalidRequest)
  serveUpgrades(server, socketPath, handleRequest)
  const port = await listen(server, config.port, life)
  // Before the listener, which waits for all connections.
  life.hold('forwarded sockets', socketForwarder, (it) => it.stop())
  life.drainFor(config.drainSeconds * 1000)
  return { port }
}

/** Replies to what Node cannot parse as HTTP, or whose headers are too large. */
function refuseInvalidRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const status = isTooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const message = isTooLarge
    ? 'The request headers are too large. Delete the cookies of this site and try again.'
    : 'This is not a valid HTTP request.'
  const body = JSON.stringify({ error: { code: 'invalid_request', message } })
  const head = ['Content-Type: application/json; charset=utf-8', 'Cache-Control: no-store', 'Connection: close']
  socket.end(`HTTP/1.1 ${status}\r\n${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}
