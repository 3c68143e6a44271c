/**
 * Upgrades of HTTP connections to WebSocket. An upgrade request passes through the same application as all other
 * requests, which refuses it with an ordinary reply or takes the connection over.
 */
import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** For the application's decision, and for the client to read a refusal. */
const handshakeMillisMax = 15_000

export interface TakenConnection {
  readonly socket: Socket
  /** Bytes that the client sent after the request. */
  readonly head: Buffer
}

const pending = new WeakMap<IncomingMessage, () => TakenConnection>()

/**
 * Takes the connection of an upgrade request from HTTP: its response can no longer be used, and the caller handles the
 * socket's errors. Undefined for a request that does not upgrade its connection.
 */
export function takeConnection(request: IncomingMessage): TakenConnection | undefined {
  const take = pending.get(request)
  pending.delete(request)
  return take?.()
}

/** Whether {@link takeConnection} returns the connection of the request. */
export const isUpgrade = (request: IncomingMessage): boolean => pending.has(request)

/**
 * Passes upgrade requests to WebSocket for this path to the application. For all others the Upgrade header is ignored,
 * as HTTP allows: some clients send one for HTTP/2 with every request.
 */
export function serveUpgrades(server: Server, path: string, handleRequest: RequestListener): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // A pipelined request, before the response to an earlier one was sent: neither can be answered in order.
    if ('_httpMessage' in socket && socket._httpMessage) socket.destroy()
    else if (isWebSocketRequest(request, path)) handleUpgrade(request, { socket, head }, handleRequest)
    else serveWithoutUpgrade(server, request, { socket, head })
  })
}

const isWebSocketRequest = ({ method, url, headers }: IncomingMessage, path: string): boolean =>
  method === 'GET' && url?.split('?')[0] === path && headers.upgrade?.toLowerCase() === 'websocket'

function handleUpgrade(request: IncomingMessage, connection: TakenConnection, handleRequest: RequestListener): void {
  const { socket } = connection
  const response = new ServerResponse(request)
  const destroy = () => socket.destroy()
  const endSocket = () => {
    pending.delete(request)
    response.detachSocket(socket)
    socket.end()
  }
  socket.on('error', destroy).setTimeout(handshakeMillisMax, destroy)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', endSocket)
  pending.set(request, () => {
    response.off('finish', endSocket).detachSocket(socket)
    // Ends what waits for the response, which is never sent.
    response.emit('finish')
    socket.off('error', destroy).setTimeout(0).off('timeout', destroy)
    return connection
  })
  handleRequest(request, response)
}

/**
 * Parses the request once more without its Upgrade header: Node has not read its body and expects no response to it.
 */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, { socket, head }: TakenConnection): void {
  const { method, url, httpVersion, rawHeaders } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2)
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${value}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('connection', socket)
}
