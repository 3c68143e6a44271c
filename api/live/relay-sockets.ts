/**
 * The WebSocket clients of `GET /relay/ws`: handshake, limits, and the end of clients that are slow, dead or signed
 * out.
 */
import type { IncomingMessage } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Database } from '../../db/connection.ts'
import { areGrantsAlive } from '../../db/identity/app-grants.ts'
import { areAuthSessionsAlive } from '../../db/identity/auth-sessions.ts'
import { takeConnection } from '../../platform/http-upgrades.ts'
import type { Logger } from '../../platform/log.ts'
import { type PeriodicTask, startPeriodicTask } from '../../platform/periodic-task.ts'
import { isApp } from '../apps/app-access-tokens.ts'
import { Refusal } from '../http/refusals.ts'
import type { TokenUser } from '../identity/access-tokens.ts'
import { checkHandshake, relaySubprotocol } from './handshake.ts'
import type { RelayFeed } from './relay-feed.ts'
import type { DropReason, RelaySocketMetrics } from './relay-socket-metrics.ts'
import type { RelayWatcher } from './relay-watcher.ts'
import type { Watcher } from './watcher.ts'

export interface RelaySocketLimits {
  /**
   * How often clients are pinged and the sign-ins of users are checked. A client without a pong by the next time is
   * dropped.
   */
  readonly pingSeconds: number
  /** A client that has not read this many bytes at the next message is dropped. */
  readonly unreadBytesMax: number
  readonly perUserMax: number
  readonly perProcessMax: number
}

export const relaySocketLimits: RelaySocketLimits = {
  pingSeconds: 30,
  unreadBytesMax: 256 * 1024,
  perUserMax: 32,
  perProcessMax: 4096,
}

/** Clients send nothing, so this only limits what is read before the socket is closed. */
const messageBytesMax = 1024
/** How long a client may take to answer the close frame when the process stops. */
const closeMillisMax = 2000

/** RFC 6455 7.4.1; codes from 4000 are for applications. */
const closeCodes = { normal: 1000, goingAway: 1001, policyViolation: 1008, signedOut: 4401 } as const

interface Client {
  readonly socket: WebSocket
  readonly caller: RelayWatcher
  readonly watcher: Watcher
  hasPonged: boolean
}

export interface NewClient {
  readonly caller: RelayWatcher
  /** Whether it wants stream events, too. */
  readonly hasEvents: boolean
  readonly responseHeaders: Readonly<Record<string, string>>
}

export interface RelaySockets {
  /**
   * Completes the handshake of an upgrade request. Refuses with `invalid_request`, `rate_limited` and
   * `temporarily_unavailable`.
   */
  open(request: IncomingMessage, client: NewClient): void
  /** Closes all sockets, so that their clients connect to another process. Refuses new ones. */
  stop(): Promise<void>
}

interface Deps {
  readonly sql: Database
  readonly log: Logger
  readonly feed: RelayFeed
  readonly metrics: RelaySocketMetrics
  readonly limits: RelaySocketLimits
}

export function createRelaySockets({ sql, log, feed, metrics, limits }: Deps): RelaySockets {
  const clients = new Set<Client>()
  let isStopping = false
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
    // The pong is sent below, since a client could make pongs pile up that it does not read.
    autoPong: false,
    handleProtocols: () => relaySubprotocol,
  })
  const headersOf = new WeakMap<IncomingMessage, Readonly<Record<string, string>>>()
  server.on('headers', (lines, request) => {
    for (const [name, value] of Object.entries(headersOf.get(request) ?? {})) lines.push(`${name}: ${value}`)
  })

  const drop = ({ socket }: Client, reason: DropReason) => {
    metrics.countDrop(reason)
    if (reason === 'unexpected_message') socket.close(closeCodes.policyViolation, 'clients send no messages')
    else socket.terminate()
  }

  const isUnread = ({ socket }: Client) => socket.bufferedAmount > limits.unreadBytesMax

  const addClient = (socket: WebSocket, caller: RelayWatcher, hasEvents: boolean) => {
    const isOpen = () => socket.readyState === socket.OPEN
    const client: Client = {
      socket,
      caller,
      hasPonged: true,
      watcher: {
        scope: 'sessionId' in caller ? { sessionId: caller.sessionId } : { userId: caller.userId },
        hasEvents,
        send: (message) => {
          if (isOpen() && isUnread(client)) drop(client, 'slow')
          else if (isOpen()) socket.send(message)
        },
        end: () => socket.close(closeCodes.normal, 'the relay session has stopped'),
      },
    }
    socket.on('pong', () => {
      client.hasPonged = true
    })
    socket.on('ping', (data) => {
      if (isOpen() && isUnread(client)) drop(client, 'slow')
      else if (isOpen()) socket.pong(data)
    })
    socket.once('message', () => drop(client, 'unexpected_message'))
    // The library closes the socket after an error.
    socket.on('error', (error) => log.debug({ err: error }, 'a WebSocket client failed'))
    socket.on('close', () => {
      clients.delete(client)
      feed.remove(client.watcher)
      metrics.setClients(clients.size)
    })
    clients.add(client)
    metrics.setClients(clients.size)
    feed.add(client.watcher)
  }

  const checkRoom = ({ userId }: RelayWatcher) => {
    const ofUser = [...clients].filter(({ caller }) => caller.userId === userId).length
    if (ofUser >= limits.perUserMax)
      throw new Refusal('rate_limited', {
        message: `This account has ${limits.perUserMax} connections already. Close one first.`,
        headers: { 'Retry-After': '30' },
      })
    if (isStopping || clients.size >= limits.perProcessMax)
      throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '2' } })
  }

  const pingAll = async () => {
    for (const client of clients) {
      if (!client.hasPonged) drop(client, 'no_pong')
      client.hasPonged = false
      if (client.socket.readyState === client.socket.OPEN) client.socket.ping()
    }
    for (const { socket } of await listSignedOut(sql, clients)) socket.close(closeCodes.signedOut, 'sign in again')
  }
  const pinging: PeriodicTask = startPeriodicTask({
    everySeconds: limits.pingSeconds,
    log,
    failure: { message: 'the sign-ins of WebSocket clients were not checked' },
    run: pingAll,
  })

  return {
    open: (request, { caller, hasEvents, responseHeaders }) => {
      checkHandshake(request)
      checkRoom(caller)
      const connection = takeConnection(request)
      if (!connection) throw new Error('the connection of a checked upgrade request was taken')
      headersOf.set(request, responseHeaders)
      server.handleUpgrade(request, connection.socket, connection.head, (socket) =>
        addClient(socket, caller, hasEvents),
      )
    },
    stop: async () => {
      isStopping = true
      await pinging.stop()
      const closed = [...clients].map(({ socket }) => new Promise((resolve) => socket.once('close', resolve)))
      for (const { socket } of clients) socket.close(closeCodes.goingAway, 'connect again')
      const timeout = setTimeout(() => {
        for (const { socket } of clients) socket.terminate()
      }, closeMillisMax)
      await Promise.all(closed)
      clearTimeout(timeout)
    },
  }
}

const isUser = (caller: RelayWatcher): caller is TokenUser => 'authSessionId' in caller

/** The clients of users and apps whose access token has expired, or whose sign-in or grant has ended. */
async function listSignedOut(sql: Database, clients: ReadonlySet<Client>): Promise<Client[]> {
  const callers = [...clients].flatMap((client) => ('sessionId' in client.caller ? [] : [client.caller]))
  const [users, apps] = [callers.filter(isUser), callers.filter(isApp)]
  const areUsersAlive = users.length === 0 ? [] : await areAuthSessionsAlive(sql, users)
  const areAppsAlive = apps.length === 0 ? [] : await areGrantsAlive(sql, apps)
  const now = Date.now() / 1000
  const alive = new Set<RelayWatcher>(
    [...users.filter((_, index) => areUsersAlive[index]), ...apps.filter((_, index) => areAppsAlive[index])].filter(
      ({ tokenExpiresAtSeconds }) => tokenExpiresAtSeconds > now,
    ),
  )
  return [...clients].filter(({ caller }) => !('sessionId' in caller) && !alive.has(caller))
}
