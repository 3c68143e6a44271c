/** WebSocket clients of `GET /relay/ws`. */
import type { IncomingMessage } from 'node:http'
import { onTestFinished } from 'vitest'
import { type ClientOptions, WebSocket } from 'ws'
import type { SessionView } from '../../api/views/relay-session.ts'
import type { ErrorBody } from './api.ts'
import { eventually } from './relays.ts'

export interface SocketMessage {
  readonly type: string
  readonly session: SessionView
}

export interface SocketClient {
  readonly socket: WebSocket
  /** All messages so far, oldest first. */
  readonly messages: SocketMessage[]
  /** The states of the messages so far. */
  states(): string[]
  /** Resolves with the first message, received or not yet, that satisfies the predicate. */
  message(isWanted: (message: SocketMessage) => boolean): Promise<SocketMessage>
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
}

interface Offer {
  readonly token?: string | null | undefined
  readonly bearer?: string
  readonly headers?: Readonly<Record<string, string>>
  /** `?events=1` for stream events. */
  readonly query?: string
  /** Replaces `svc.relay.v1` and the token. */
  readonly subprotocols?: readonly string[]
  /** Whether pings are answered. */
  readonly autoPong?: boolean
}

/** The reply that refused the handshake. */
export class RefusedHandshake extends Error {
  constructor(
    readonly status: number,
    readonly headers: IncomingMessage['headers'],
    readonly body: ErrorBody,
  ) {
    super(`${status} ${body.error?.code}`)
  }
}

/** Resolves when the connection is open. It is terminated after the test. Rejects with {@link RefusedHandshake}. */
export function connectSocket(baseUrl: string, offer: Offer): Promise<SocketClient> {
  const { token, bearer, headers, subprotocols, autoPong = true, query = '' } = offer
  const options = {
    autoPong,
    headers: { ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }), ...headers },
  }
  const offered = subprotocols ?? ['svc.relay.v1', ...(token ? [token] : [])]
  // The type of the option is missing in @types/ws.
  const socket = new WebSocket(`${baseUrl}/api/v1/relay/ws${query}`, [...offered], options as ClientOptions)
  const messages: SocketMessage[] = []
  socket.on('message', (data) => messages.push(JSON.parse(String(data)) as SocketMessage))
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }))
  })
  onTestFinished(() => socket.terminate())
  const client: SocketClient = {
    socket,
    messages,
    closed,
    states: () => messages.map(({ session }) => session.state),
    message: async (isWanted) =>
      (await eventually(
        () => messages.find(isWanted),
        (found) => found !== undefined,
      )) as SocketMessage,
  }
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(client))
    socket.on('error', reject)
    socket.once('unexpected-response', (_, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        reject(new RefusedHandshake(response.statusCode ?? 0, response.headers, JSON.parse(text) as ErrorBody))
      })
    })
  })
}

/** Status and code of the reply that refuses the handshake. */
export async function refusalOf(connecting: Promise<SocketClient>): Promise<[number, string]> {
  const outcome = await connecting.catch((error: unknown) => error)
  if (outcome instanceof RefusedHandshake) return [outcome.status, outcome.body.error.code]
  throw outcome instanceof Error ? outcome : new Error('the handshake was accepted')
}
