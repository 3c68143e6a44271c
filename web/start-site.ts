/** The site's listener and what it is made of. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SiteConfig } from '../platform/config.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/log.ts'
import { createApi } from './api.ts'
import { createApp } from './app.ts'
import { readAssets } from './assets.ts'
import { createRefreshing } from './refreshing.ts'

/** How long requests under way may take to end when the process stops. */
const drainMillisMax = 10_000

interface Needs {
  readonly config: SiteConfig
  readonly log: Logger
  readonly life: Lifecycle
}

/** Resolves once it listens, whether or not the api is there. */
export async function startSite({ config, log, life }: Needs): Promise<{ port: number }> {
  const api = createApi(config.apiUrl)
  const assets = await readAssets()
  const app = createApp({ config, log, api, assets, refreshing: createRefreshing(api) })
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 65_000 },
    app.callback(),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(config.port, resolve)
  })
  life.hold('listener', server, drain)
  return { port: (server.address() as AddressInfo).port }
}

/** Takes no new connection, lets requests under way end, and then closes what is still open. */
async function drain(server: Server): Promise<void> {
  const late = setTimeout(() => server.closeAllConnections(), drainMillisMax)
  const tidying = setInterval(() => server.closeIdleConnections(), 50)
  await new Promise((resolve) => server.close(resolve))
  clearInterval(tidying)
  clearTimeout(late)
}
