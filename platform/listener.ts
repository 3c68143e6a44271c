/** A process's HTTP listener: from its first connection to its last reply. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Lifecycle } from './lifecycle.ts'

/** How long requests under way may take to end when the process stops. */
const drainMillisMax = 10_000

/** Resolves with the port once the server listens. It stops with `life`. Rejects when the port is taken. */
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

/** Takes no new connection, lets requests under way end, and then closes what is still open. */
async function drain(server: Server): Promise<void> {
  const late = setTimeout(() => server.closeAllConnections(), drainMillisMax)
  // A connection whose request was under way is kept for the next one, which is not to come.
  const tidying = setInterval(() => server.closeIdleConnections(), 50)
  await new Promise((resolve) => server.close(resolve))
  clearInterval(tidying)
  clearTimeout(late)
}
