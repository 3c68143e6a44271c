/**
 * The HTTP API of an SLS server, written from the sources of OpenIRL/srt-live-server (a register of stream ids, Bearer
 * keys) and irlserver/irl-srt-server (disconnects, bare keys), which have no route in common.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export type SlsKind = 'OpenIRL' | 'irl-srt-server'

export const slsKey = 'a-key-of-32-characters-of-the-api'

interface Reply {
  readonly status: number
  readonly body?: object
}

/** @param port that of a closed one, to bring it back; 0 for any free port. */
export async function givenSls(kind: SlsKind, { port = 0, disconnectMillis = 0 } = {}) {
  /** Publishers' stream ids by those of their players. */
  const registered = new Map<string, string>()
  const disconnected: string[] = []

  const answerOpenIrl = (method: string, url: URL, authorization: string | undefined, body: string): Reply => {
    const [, player] = /^\/api\/stream-ids(?:\/(.+))?$/.exec(decodeURIComponent(url.pathname)) ?? [undefined]
    if (!url.pathname.startsWith('/api/stream-ids')) return { status: 404 }
    if (authorization !== `Bearer ${slsKey}`) return { status: 401, body: { status: 'error' } }
    if (method === 'DELETE') return { status: registered.delete(player ?? '') ? 200 : 404 }
    const ids = JSON.parse(body) as { publisher: string; player: string }
    if (registered.has(ids.player)) return { status: 409, body: { status: 'error' } }
    registered.set(ids.player, ids.publisher)
    return { status: 200, body: { status: 'success' } }
  }

  const answerIrlServer = async (method: string, url: URL, authorization: string | undefined): Promise<Reply> => {
    if (method !== 'POST' || url.pathname !== '/disconnect') return { status: 404 }
    if (authorization !== slsKey) return { status: 401, body: { status: 'error' } }
    await new Promise((done) => setTimeout(done, disconnectMillis))
    disconnected.push(url.searchParams.get('stream') ?? '')
    return { status: 200, body: { status: 'ok' } }
  }

  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method = '', headers } = request
    const url = new URL(request.url ?? '', 'http://sls')
    const reply =
      kind === 'OpenIRL'
        ? answerOpenIrl(method, url, headers.authorization, body)
        : await answerIrlServer(method, url, headers.authorization)
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body ?? {}))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
  onTestFinished(close)
  const bound = (server.address() as AddressInfo).port
  return { apiUrl: `http://127.0.0.1:${bound}`, port: bound, registered, disconnected, close }
}
