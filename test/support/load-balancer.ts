/**
 * A load balancer in front of several API processes: round robin over those whose /readyz answers 200, and no retries.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const checkMillis = 200
/** A process that does not answer its check for this long gets no requests until it does. */
const checkAnswerMillisMax = 5_000
/** The requests that are kept for inspection; the oldest are dropped. */
const forwardedMax = 100_000

export interface ForwardedRequest {
  /** Such as `GET /api/v1/relay/active`, without the query. */
  readonly operation: string
  /** 502 when the process closed the connection without a reply, and 503 when no process was ready. */
  readonly status: number
  readonly retryAfter: string | undefined
  /** The port of the process. */
  readonly port: number | undefined
}

export interface LoadBalancer {
  readonly url: string
  /** The requests so far, in the order of their replies. */
  readonly forwarded: readonly ForwardedRequest[]
  readonly readyPorts: () => readonly number[]
  close(): void
}

/** Starts it on a free port. */
export async function startLoadBalancer(ports: readonly number[]): Promise<LoadBalancer> {
  const forwarded: ForwardedRequest[] = []
  const agent = new Agent({ keepAlive: true })
  const ready: number[] = []
  let next = 0
  const server = createServer((incoming, outgoing) => {
    const port = ready[next++ % Math.max(1, ready.length)]
    const operation = `${incoming.method} ${incoming.url?.split('?')[0]}`
    outgoing.on('finish', () => {
      const retryAfter = outgoing.getHeader('retry-after')?.toString()
      forwarded.push({ operation, status: outgoing.statusCode, retryAfter, port })
      if (forwarded.length > forwardedMax) forwarded.shift()
    })
    if (port === undefined) outgoing.writeHead(503).end()
    else forward(incoming, outgoing, { agent, port })
  })
  // The default ends idle connections sooner than the `Keep-Alive` of the processes, which is passed on, promises.
  server.keepAliveTimeout = 0
  let isClosed = false
  /** Each process on its own, so that one that hangs does not delay the others. */
  const check = async (port: number): Promise<void> => {
    while (!isClosed) {
      const [isAnswering, index] = [await isReady(port), ready.indexOf(port)]
      if (isAnswering && index < 0) ready.push(port)
      else if (!isAnswering && index >= 0) ready.splice(index, 1)
      await sleep(checkMillis)
    }
  }
  for (const port of ports) void check(port)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    isClosed = true
    agent.destroy()
    server.close()
    server.closeAllConnections()
  }
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, forwarded, readyPorts: () => ready, close }
}

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(checkAnswerMillisMax) }).then(
    ({ ok }) => ok,
    () => false,
  )

function forward(incoming: IncomingMessage, outgoing: ServerResponse, { agent, port }: { agent: Agent; port: number }) {
  const { method, url: path, headers } = incoming
  const options = { host: '127.0.0.1', port, method, path, headers, agent }
  const upstream = request(options, (reply) => {
    outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
    reply.on('error', () => outgoing.destroy()).pipe(outgoing)
  })
  upstream.on('error', () => {
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502).end()
  })
  // A client that gave up must not keep a connection to a process that hangs.
  outgoing.on('close', () => upstream.destroy())
  incoming.pipe(upstream)
}
