/** Requests as handlers get them. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** Undefined for a missing or empty header. */
export type ReadHeader = (name: string) => string | undefined

/** The parts of a request that authenticate its caller. */
export interface Credentials {
  /** The client's address: from `X-Forwarded-For` as far as its proxies are trusted, otherwise the peer's. */
  readonly ip: string
  readonly header: ReadHeader
}

export interface Request<Caller = unknown, Params = unknown, Query = unknown, Body = unknown, Read = unknown>
  extends Credentials {
  readonly caller: Caller
  /** What was read of the caller when the request was admitted. */
  readonly read: Read
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The raw body if the route sets `bytesMax`, otherwise empty. */
  readonly bytes: Buffer
  readonly headers: IncomingHttpHeaders
  readonly userAgent: string
  readonly requestId: string
  /** The request as Node received it. A handler that takes its connection over returns the status 101. */
  readonly incoming: IncomingMessage
}
