/** The ports of a relay: three UDP ports for streams, and an HTTP port for statistics. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, isIPv6 } from 'node:net'
import type { Log } from './log.ts'
import type { StatsReply } from './stats.ts'

export interface Ports {
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

export interface Listeners {
  readonly ports: Ports
  close(): Promise<void>
}

/** The ports that receive streams. */
export type Entrance = 'srtla' | 'publish'

export interface ListenOptions {
  readonly host: string
  readonly log: Log
  /** Called for each datagram, with the sender as `address:port`. */
  readonly onDatagram: (entrance: Entrance, addr: string, bytes: number) => void
  readonly showStats: () => StatsReply
}

/** Binds free ports. Rejects when one cannot be bound. */
export async function listen({ host, log, onDatagram, showStats }: ListenOptions): Promise<Listeners> {
  const open = () => openSocket(host, log)
  const [srtla, publish, play, stats] = await Promise.all([open(), open(), open(), serveStats(host, log, showStats)])
  srtla.on('message', (data, from) => onDatagram('srtla', addressOf(from), data.length))
  publish.on('message', (data, from) => onDatagram('publish', addressOf(from), data.length))
  return {
    ports: {
      srtlaPort: srtla.address().port,
      publishPort: publish.address().port,
      playPort: play.address().port,
      statsPort: (stats.address() as AddressInfo).port,
    },
    async close() {
      stats.closeAllConnections()
      await Promise.all([
        ...[srtla, publish, play].map((socket) => new Promise<void>((done) => socket.close(() => done()))),
        new Promise<void>((done) => stats.close(() => done())),
      ])
    },
  }
}

async function openSocket(host: string, log: Log): Promise<Socket> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  socket.bind(0, host)
  await once(socket, 'listening')
  // An error of the network must not end the relay.
  socket.on('error', (error) => log('warn', 'a UDP socket had an error', { error: error.message }))
  return socket
}

async function serveStats(host: string, log: Log, showStats: () => StatsReply): Promise<Server> {
  const server = createServer((request, response) => {
    const isStats = request.method === 'GET' && request.url?.split('?')[0] === '/stats'
    const body = isStats
      ? showStats()
      : { error: { code: 'not_found', message: 'Not found. The only path is GET /stats.' } }
    response.writeHead(isStats ? 200 : 404, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      // Public, since stream overlays read it from pages of any origin.
      'access-control-allow-origin': '*',
    })
    response.end(JSON.stringify(body))
  })
  server.maxConnections = 256
  server.requestTimeout = 5_000
  server.listen(0, host)
  await once(server, 'listening')
  server.on('error', (error) => log('warn', 'the stats server had an error', { error: error.message }))
  return server
}

const addressOf = (from: RemoteInfo) =>
  from.family === 'IPv6' ? `[${from.address}]:${from.port}` : `${from.address}:${from.port}`
