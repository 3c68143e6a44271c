/** A proxy that counts how often the clients of a server wait for its answers. */
import { connect, createServer } from 'node:net'
import { atEnd } from './at-end.ts'
import { findFreePort } from './ports.ts'

export interface RoundTrips {
  /** The URL of the server through the proxy. */
  readonly url: string
  /** On all connections so far. Statements that are sent together count once. */
  count(): number
}

/** Starts the proxy. It has to run in the process of the client. */
export async function countRoundTrips(url: string): Promise<RoundTrips> {
  const target = new URL(url)
  let count = 0
  const server = createServer((from) => {
    const to = connect(Number(target.port), target.hostname)
    for (const socket of [from, to]) socket.on('error', () => {})
    from.on('close', () => to.destroy())
    to.on('close', () => from.destroy())
    let isAnswered = true
    from.on('data', (sent) => {
      if (isAnswered) count += 1
      isAnswered = false
      to.write(sent)
    })
    to.on('data', (answer) => {
      // By then everything has arrived that the client writes without this answer, also in several parts.
      setImmediate(() => {
        isAnswered = true
        from.write(answer)
      })
    })
  })
  const port = await findFreePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atEnd(async () => {
    // The client has closed its connections.
    await new Promise((resolve) => server.close(resolve))
  })
  const through = new URL(url)
  through.host = `127.0.0.1:${port}`
  return { url: through.href, count: () => count }
}
