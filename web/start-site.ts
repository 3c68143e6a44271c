/** Wires the site's application to a listener. */
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { SiteConfig } from '../platform/config/site.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import { listen } from '../platform/listener.ts'
import type { Logger } from '../platform/log.ts'
import { createApi } from './api.ts'
import { createApp } from './app.ts'
import { readAssets } from './assets.ts'
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
  const app = createApp({ config, log, api, assets, tokenRefresher: createTokenRefresher(api), isDraining })
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 65_000 },
    app.callback(),
  )
  server.on('clientError', refuseInvalidRequest)
  const port = await listen(server, config.port, life)
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
