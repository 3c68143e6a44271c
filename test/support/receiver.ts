/** A receiver of webhooks on this machine, and the rules that allow messages to it. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type EndpointRules, publicEndpointRules } from '../../providers/webhooks/endpoint-rules.ts'
import { atEnd } from './at-end.ts'

interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface ReceiverReply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Receiver {
  readonly port: number
  readonly url: string
  readonly requests: Received[]
  /** The next replies, 204 afterwards. Null leaves a request without a reply. */
  readonly replies: (ReceiverReply | null)[]
}

export async function startReceiver(): Promise<Receiver> {
  const requests: Received[] = []
  const replies: (ReceiverReply | null)[] = []
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
    requests.push({ path: incoming.url ?? '', headers: incoming.headers, body: Buffer.concat(chunks).toString() })
    const reply = replies.length > 0 ? replies.shift() : { status: 204 }
    if (reply) response.writeHead(reply.status, reply.headers).end(reply.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}/hook`, requests, replies }
}

/** As in production, but also http, any port, this machine, and Discord on this machine. */
export const localRules = (receiver: Receiver): EndpointRules => ({
  ...publicEndpointRules,
  protocols: ['http:', 'https:'],
  isAllowedPort: () => true,
  isAllowedAddress: (address) => address === '127.0.0.1' || publicEndpointRules.isAllowedAddress(address),
  discordHosts: [`127.0.0.1:${receiver.port}`],
})
