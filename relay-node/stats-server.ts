/**
 * The HTTP port of a relay: statistics for the plugin, for stream overlays and for scene switchers, without
 * authentication, and the page about links for the owner.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { ConnectionPlaces } from './connection-places.ts'
import { answerLinks, type LinksPageOptions } from './links-page.ts'
import type { Log } from './log.ts'
import type { LinkStats, PublishersReply, StatsReply } from './stats.ts'

export interface StatsSource {
  showStats(): StatsReply
  /** @param streamId contains the stream token, so a reply about a publisher needs it. */
  showPublisher(streamId: string): PublishersReply
  /** The publisher for the holder of a play key; undefined for any other text. */
  showPublisherTo(playKey: string): PublishersReply | undefined
  /** The links with their full addresses. */
  showLinks(): readonly LinkStats[]
}

export interface StatsServer {
  readonly port: number
  close(): Promise<void>
}

interface Reply {
  readonly status: number
  readonly body: object
}

const notFound: Reply = {
  status: 404,
  body: {
    error: {
      code: 'not_found',
      message: 'Not found. The paths are GET /stats, GET /stats/<play key>, GET /links and GET /healthz.',
    },
  },
}

export interface StatsServerOptions {
  readonly hosts: readonly string[]
  /** 0 for a free one. */
  readonly port: number
  readonly source: StatsSource
  /** Part of `/healthz`, by which the control plane knows that this relay answers. */
  readonly instanceId: string
  /** Since when the control plane has not known this relay; null while it does. */
  readonly unknownSince: () => Date | null
  /** For the page about links. */
  readonly owner: Pick<LinksPageOptions, 'secret' | 'sessionId'>
  readonly log: Log
}

/** A request is one short packet. Connections are checked once a second. */
const limits = {
  headersTimeout: 3_000,
  requestTimeout: 5_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
}

export async function startStatsServer({ hosts, port, log, ...view }: StatsServerOptions): Promise<StatsServer> {
  const places = new ConnectionPlaces<Socket>({ max: 256, perAddressMax: 64 })
  const server = createServer(limits, (request, response) => {
    places.touch(request.socket)
    const url = request.url ?? ''
    const page = request.method === 'GET' ? answerPage(url, view) : undefined
    if (page) {
      response.writeHead(page.status, page.headers).end(page.body)
      return
    }
    const { status, body } = request.method === 'GET' ? answer(url, view) : notFound
    response.writeHead(status, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      // Public, since stream overlays read it from pages of any origin.
      'access-control-allow-origin': '*',
    })
    response.end(JSON.stringify(body))
  })
  server.on('connection', (socket) => {
    places.take(socket)
    socket.once('close', () => places.leave(socket))
  })
  // Of TCP, one socket at `::`, which is the last of several hosts, serves both families.
  server.listen(port, hosts.at(-1))
  await once(server, 'listening')
  server.on('error', (error) => log('warn', 'the stats server had an error', { error: error.message }))
  return { port: (server.address() as AddressInfo).port, close: () => close(server) }
}

function answerPage(url: string, { source, owner }: Pick<StatsServerOptions, 'source' | 'owner'>) {
  const [path = '', query] = url.split('?', 2)
  const options = { ...owner, links: () => source.showLinks() }
  return answerLinks(path, new URLSearchParams(query), options, Date.now())
}

function answer(
  url: string,
  { source, instanceId, unknownSince }: Pick<StatsServerOptions, 'source' | 'instanceId' | 'unknownSince'>,
): Reply {
  const [path, query] = url.split('?', 2)
  if (path === '/healthz') {
    const since = unknownSince()
    const unknown = since ? { unknown_since: since } : {}
    return { status: 200, body: { status: 'ok', instance_id: instanceId, ...unknown } }
  }
  const playKey = /^\/stats\/(?<key>[^/]+)$/.exec(path ?? '')?.groups?.key
  if (playKey !== undefined) {
    const shown = source.showPublisherTo(playKey)
    return shown === undefined ? notFound : { status: 200, body: shown }
  }
  if (path !== '/stats') return notFound
  const publisher = new URLSearchParams(query).get('publisher')
  return { status: 200, body: publisher === null ? source.showStats() : source.showPublisher(publisher) }
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise<void>((done) => server.close(() => done()))
}
