/**
 * `GET /api/v1/relay/ws` on the site's origin: a WebSocket of a page's script, connected to the API with the access
 * token of the cookie. After the handshake bytes pass in both directions unread, so pings, closes and backpressure do
 * too.
 */
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { ApiUnreachableError } from '../client/api-error.ts'
import { type TakenConnection, takeConnection } from '../platform/http-upgrades.ts'
import { type Visitor, visitorHeaders } from './api.ts'
import { type ForwardedReply, toReply } from './backend-for-frontend.ts'

export const socketPath = '/api/v1/relay/ws'

const connectMillisMax = 10_000
const refusalBytesMax = 64 * 1024
/** How long one side may take to read the rest after the other side has closed. */
const flushMillisMax = 5000

/**
 * Not the token of a session, which a page could add as a second subprotocol: the cookie decides what the page gets.
 */
const subprotocol = 'svc.relay.v1'
const forwardedRequestHeaders = ['sec-websocket-key', 'sec-websocket-version']
const forwardedResponseHeaders = ['sec-websocket-accept', 'sec-websocket-protocol', 'x-request-id']

interface Sender {
  readonly visitor: Visitor
  readonly bearer: string
}

export interface SocketForwarder {
  /**
   * Connects an upgrade request with the API. Resolves to the API's reply when it refuses, and to undefined when the
   * connection is no longer HTTP. Rejects with {@link ApiUnreachableError}.
   */
  forward(request: IncomingMessage, sender: Sender): Promise<ForwardedReply | undefined>
  /** Closes all connections; the scripts connect again, to another process. */
  stop(): void
}

export function createSocketForwarder(apiUrl: string): SocketForwarder {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => sockets.add(socket.once('close', () => sockets.delete(socket)))
  return {
    forward: async (request, sender) => {
      const reply = await connectToApi(apiUrl, request, sender)
      if ('refusal' in reply) return reply.refusal
      const page = takeConnection(request)
      if (!page) {
        reply.connection.socket.destroy()
        return undefined
      }
      for (const { socket } of [page, reply.connection]) keep(socket)
      join(page, reply.connection, reply.head)
      return undefined
    },
    stop: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

type HandshakeReply =
  | { readonly refusal: ForwardedReply }
  | { readonly connection: TakenConnection; readonly head: string }

function connectToApi(apiUrl: string, incoming: IncomingMessage, sender: Sender): Promise<HandshakeReply> {
  const url = new URL(apiUrl + socketPath)
  const offered = (incoming.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim())
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const request = send(url, {
      agent: false,
      timeout: connectMillisMax,
      headers: {
        ...visitorHeaders(sender),
        connection: 'Upgrade',
        upgrade: 'websocket',
        ...pick(forwardedRequestHeaders, incoming),
        ...(offered.includes(subprotocol) ? { 'sec-websocket-protocol': subprotocol } : {}),
      },
    })
    const fail = (cause?: unknown) => {
      request.destroy()
      reject(new ApiUnreachableError('the API did not accept a WebSocket', { cause }))
    }
    // The visitor has left the page.
    incoming.socket.once('close', fail)
    request.once('timeout', fail).on('error', fail)
    request.once('upgrade', (response, socket: Socket, head) => {
      incoming.socket.off('close', fail)
      const lines = Object.entries(pick(forwardedResponseHeaders, response)).map(([name, value]) => `${name}: ${value}`)
      const start = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
      resolve({ connection: { socket, head }, head: `${start}${lines.join('\r\n')}\r\n\r\n` })
    })
    request.once('response', (response) => {
      readRefusal(response).then((refusal) => resolve({ refusal }), fail)
    })
    request.end()
  })
}

const pick = (names: readonly string[], { headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])))

async function readRefusal(response: IncomingMessage): Promise<ForwardedReply> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > refusalBytesMax) throw new Error('the reply of the API is too large')
    chunks.push(chunk)
  }
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) headers.set(name, String(value))
  return toReply(
    new Response(length > 0 ? Buffer.concat(chunks) : null, { status: response.statusCode ?? 502, headers }),
  )
}

/** Passes bytes in both directions until one side closes. */
function join(page: TakenConnection, api: TakenConnection, head: string): void {
  for (const [{ socket }, { socket: other }] of [
    [page, api],
    [api, page],
  ] as const) {
    socket.setTimeout(0).setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      other.destroySoon()
      setTimeout(() => other.destroy(), flushMillisMax).unref()
    })
  }
  page.socket.write(head)
  page.socket.write(api.head)
  api.socket.write(page.head)
  page.socket.pipe(api.socket).pipe(page.socket)
}
