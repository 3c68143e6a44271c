/** Starts and stops the HTTP listener of a process. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Lifecycle } from './lifecycle.ts'

/** In milliseconds. Node closes a connection whose request is incomplete after its limit, at the next check. */
export const connectionLimits = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 65_000,
}

/** How long requests in flight may take when the process stops. */
const drainMillisMax = 10_000

/** Resolves with the port once the server listens. `life` stops it. Rejects when the port is taken. */
export async function listen(server: Server, port: number, life: Lifecycle): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, () => {
      server.off('error', reject)
      resolve()
    })
  })
  life.hold('listener', server, drain)
  return (server.address() as AddressInfo).port
}

/**
 * Accepts no more connections, waits for requests in flight, and closes the connections that are left after the limit.
 */
async function drain(server: Server): Promise<void> {
  const timeout = setTimeout(() => server.closeAllConnections(), drainMillisMax)
  // A keep-alive connection becomes idle when its request ends.
  const closing = setInterval(() => server.closeIdleConnections(), 50)
  await new Promise((resolve) => server.close(resolve))
  clearInterval(closing)
  clearTimeout(timeout)
}
