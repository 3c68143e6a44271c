/** Raw HTTP over a socket, for requests that no client library sends. */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Sends the parts in sequence and reads until the server closes the connection, as with `Connection: close`. */
export async function sendRaw(url: string, ...parts: readonly (string | Uint8Array)[]): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  // After a reset the data received so far is the response.
  socket.on('error', () => {})
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  for (const part of parts) socket.write(part)
  await closed
  const [head = '', body = ''] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n', 2)
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, body }
}

/** A request with this first line and without a body. */
export const rawRequest = (url: string, firstLine: string, ...headers: readonly string[]): Promise<RawAnswer> =>
  sendRaw(url, `${[firstLine, `Host: ${new URL(url).host}`, 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`)
