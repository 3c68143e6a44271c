/**
 * An HTTP server in place of the API, where a test checks what the site sends or needs replies that the API never
 * gives.
 */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './at-end.ts'

export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface DoubleReply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: object | string | Uint8Array
}

type Responder = (request: ReceivedRequest) => DoubleReply | Promise<DoubleReply>

export interface ApiDouble {
  readonly url: string
  /** All requests so far, oldest first. */
  readonly requests: ReceivedRequest[]
  /** Replaces the responder, which at first replies `{}`. A promise that never resolves leaves the request open. */
  respondWith(responder: Responder): void
  /** Closes the port and all connections. */
  close(): Promise<void>
}

export async function startApiDouble(): Promise<ApiDouble> {
  let responder: Responder = () => ({ body: {} })
  const requests: ReceivedRequest[] = []
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
    const { method = '', url = '', headers } = incoming
    const request = { method, url, headers, body: Buffer.concat(chunks).toString('utf8') }
    requests.push(request)
    const { status = 200, headers: replyHeaders = {}, body } = await responder(request)
    for (const [name, value] of Object.entries(replyHeaders)) response.setHeader(name, value as string | string[])
    const isJson = typeof body === 'object' && !(body instanceof Uint8Array)
    if (isJson) response.setHeader('content-type', 'application/json; charset=utf-8')
    response.writeHead(status).end(isJson ? JSON.stringify(body) : body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => closeServer(server))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    respondWith: (next) => {
      responder = next
    },
    close: () => closeServer(server),
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
