/** Which port a server of the embedded stack listens on: the wanted one, or a free one when nobody insisted. */
import { createServer } from 'node:net'

const listenOnce = (port: number, host: string): Promise<number | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.unref()
    server.once('error', () => resolve(undefined))
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined))
    })
  })

/** A port of this machine's loopback that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const port = await listenOnce(0, '127.0.0.1')
  if (port === undefined) throw new Error('no free port on 127.0.0.1')
  return port
}

/** Whether a server could listen on it now, on loopback and on all addresses. */
export async function isFreePort(port: number): Promise<boolean> {
  // One after the other: together they would meet each other on systems where a wildcard covers loopback.
  return (await listenOnce(port, '127.0.0.1')) !== undefined && (await listenOnce(port, '0.0.0.0')) !== undefined
}

export interface PortWish {
  /** Who will listen, for the error text. */
  what: string
  /** The variable that sets it, for the error text. */
  variable: string
  /** The port somebody asked for by that variable: this one or none. */
  explicit: number | undefined
  /** Tried in this order when nobody asked; after them any free port. */
  preferred: readonly number[]
}

/** Throws when the port that was asked for is taken; the error says what to do. */
export async function choosePort({ what, variable, explicit, preferred }: PortWish): Promise<number> {
  if (explicit !== undefined) {
    if (await isFreePort(explicit)) return explicit
    throw new Error(
      `Port ${explicit} for ${what} (${variable}) is taken by another program. ` +
        `End that program, set ${variable} to another port, or unset it and a free one is chosen.`,
    )
  }
  for (const port of preferred) if (await isFreePort(port)) return port
  return freePort()
}

/** Chooses at the first call, and answers the same port ever after: a server that is started again keeps it. */
export function choosePortOnce(wish: PortWish): () => Promise<number> {
  let chosen: number | undefined
  return async () => {
    chosen ??= await choosePort(wish)
    return chosen
  }
}
