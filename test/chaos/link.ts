/** A TCP proxy that can be cut off, in front of a server that may be restarted at the same port. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * `refuse`: connections are closed, and new ones at once. `silence`: they stay open, and no data passes until the cut
 * ends.
 */
export type CutMode = 'refuse' | 'silence'

export interface Link {
  readonly port: number
  cut(mode: CutMode): void
  restore(): void
  close(): void
}

/** Starts the proxy on a free port of 127.0.0.1. @param targetPort of the server. */
export async function startLink(targetPort: number): Promise<Link> {
  const pairs = new Set<Pair>()
  let mode: CutMode | null = null
  const server = createServer((from) => {
    if (mode === 'refuse') {
      from.destroy()
      return
    }
    const pair = createPair(from, targetPort)
    pairs.add(pair)
    from.on('close', () => pairs.delete(pair))
    if (mode === null) pair.pass()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const destroyAll = () => {
    for (const pair of pairs) pair.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut(next) {
      mode = next
      if (next === 'refuse') destroyAll()
      else for (const pair of pairs) pair.hold()
    },
    restore() {
      mode = null
      for (const pair of pairs) pair.pass()
    },
    close() {
      server.close()
      destroyAll()
    },
  }
}

/** A connection of a client, and the one to the server, which is opened when data may pass for the first time. */
interface Pair {
  pass(): void
  hold(): void
  destroy(): void
}

function createPair(from: Socket, targetPort: number): Pair {
  let to: Socket | undefined
  const destroy = () => {
    from.destroy()
    to?.destroy()
  }
  from.pause().on('error', destroy).on('close', destroy)
  return {
    destroy,
    pass() {
      if (from.destroyed) return
      to ??= connect(targetPort, '127.0.0.1').setNoDelay(true).on('error', destroy).on('close', destroy)
      from.setNoDelay(true).pipe(to)
      to.pipe(from)
    },
    hold() {
      for (const socket of [from, to]) socket?.unpipe().pause()
    },
  }
}
