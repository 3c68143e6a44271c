/** Connections on which a test sends any bytes. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'

/** Resolves once the server has accepted the connection. Errors of the connection count as its end. */
export async function openConnection(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).on('error', () => {})
  await once(socket, 'connect')
  return socket
}

export const isClosed = (socket: Socket): boolean => socket.destroyed || socket.readableEnded

/** Sends the bytes and returns everything that the server sends until it closes the connection, or for so long. */
export async function converse(url: string, bytes: string | Uint8Array, millisMax = 20_000): Promise<string> {
  const socket = await openConnection(url)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(millisMax) }).catch(() => undefined)
  socket.write(bytes)
  await closed
  socket.destroy()
  return Buffer.concat(chunks).toString('latin1')
}

/** The statuses of all responses in what a connection has received. */
export const statusesIn = (received: string): number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

interface RawReply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

interface RawRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends the path as it is, without the normalisation of `fetch`. */
export async function requestPath(
  url: string,
  path: string,
  { method = 'GET', headers = {}, body }: RawRequest = {},
): Promise<RawReply> {
  const { hostname, port } = new URL(url)
  const outgoing = request({ hostname, port, path, method, headers })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString('utf8') }
}
