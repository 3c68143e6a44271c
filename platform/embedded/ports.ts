/** Chooses the ports of the embedded servers and of the service. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const attemptsMax = 100

/** A program that listens on one of them alone would get the requests of those for whom `localhost` is that address. */
const hosts = ['127.0.0.1', '0.0.0.0', '::1', '::']
/** Every other error, such as that of a machine without IPv6, says nothing about the port. */
const isTaken = ({ code }: NodeJS.ErrnoException): boolean => code === 'EADDRINUSE' || code === 'EACCES'

/** Listens for a moment. Resolves with whether the port is free. */
const tryListen = (port: number, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().unref()
    server.once('error', (error) => resolve(!isTaken(error)))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })

/** @returns a function that finds a port from the first one up to the last one, on which no process listens. */
export function createPortFinder(first: number, last: number): () => Promise<number> {
  /** Each call goes on from the last one, so that a process gets no port twice while its server does not listen yet. */
  let next = randomInt(first, last + 1)
  return async () => {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const port = next
      next = port < last ? port + 1 : first
      if (await isFreePort(port)) return port
    }
    throw new Error(`${attemptsMax} ports between ${first} and ${last} are taken by other programs`)
  }
}

/**
 * A port on which no process listens, below the ranges from which systems take the ports of outgoing connections: none
 * takes it before its server listens.
 */
export const findFreePort = createPortFinder(20_000, 31_999)

/** Whether a server could listen on the port, on loopback and on all addresses of both families. */
export async function isFreePort(port: number): Promise<boolean> {
  for (const host of hosts) if (!(await tryListen(port, host))) return false
  return true
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
