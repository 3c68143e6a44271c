/** Chooses the ports of the embedded servers and of the service. */
import { createServer } from 'node:net'

/** Listens for a moment. Resolves with the port; undefined when it is taken. @param port 0 for any free port. */
const tryListen = (port: number, host: string): Promise<number | undefined> =>
  new Promise((resolve) => {
    const server = createServer().unref()
    server.once('error', () => resolve(undefined))
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined))
    })
  })

/** A port of the loopback interface on which no process listens. */
export async function findFreePort(): Promise<number> {
  const port = await tryListen(0, '127.0.0.1')
  if (port === undefined) throw new Error('There is no free port on 127.0.0.1')
  return port
}

/** Whether a server could listen on the port, on loopback and on all addresses. */
export async function isFreePort(port: number): Promise<boolean> {
  // One after the other, since on some systems a listener on all addresses takes the port on loopback too.
  return (await tryListen(port, '127.0.0.1')) !== undefined && (await tryListen(port, '0.0.0.0')) !== undefined
}

export interface PortChoice {
  /** The server that will listen, for the error message. */
  server: string
  /** The variable that sets the port, for the error message. */
  variable: string
  /** The value of that variable, which has no alternative. */
  explicit: number | undefined
  /** Tried in this order when the variable is not set, before any other free port. */
  preferred: readonly number[]
}

/** Throws when the explicit port is taken, with the way out. */
export async function choosePort({ server, variable, explicit, preferred }: PortChoice): Promise<number> {
  for (const port of explicit === undefined ? preferred : [explicit]) if (await isFreePort(port)) return port
  if (explicit === undefined) return findFreePort()
  throw new Error(describeTakenPort({ server, variable, port: explicit }))
}

/** A port that a variable sets. */
export interface FixedPort extends Pick<PortChoice, 'server' | 'variable'> {
  readonly port: number
}

/** With the way out. */
export const describeTakenPort = ({ server, variable, port }: FixedPort): string =>
  `Port ${port} for ${server} (${variable}) is taken by another program. ` +
  `End that program, set ${variable} to another port, or unset it to use any free port.`

/**
 * Chooses the port at the first call, and returns the same port at every later call, so that a restarted server keeps
 * it.
 */
export function choosePortOnce(choice: PortChoice): () => Promise<number> {
  let port: number | undefined
  return async () => {
    port ??= await choosePort(choice)
    return port
  }
}
