/** What a route is: data that the router, the OpenAPI document, the limits and the docs page are all made from. */
import type { IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import type { RateLimitName } from '../../platform/config/values.ts'
import type { User } from '../identity/access-tokens.ts'
import type { Services } from '../services.ts'
import type { RefusalCode } from './refusals.ts'

export interface Callers {
  none: undefined
  user: User
  /** Signed in or not; whoever brings a token that is none is refused all the same. */
  maybe_user: User | undefined
  operator: 'operator'
  relay: 'relay'
}

export type CallerKind = keyof Callers

/** What a request brings to prove who its caller is. */
export interface Credentials {
  readonly ip: string
  readonly header: (name: string) => string | undefined
}

/** A schema of named parts: path parameters, query or body. */
type Shape = z.ZodType<Record<string, unknown>>

export interface Request<Kind extends CallerKind, Params, Query, Body> {
  readonly caller: Callers[Kind]
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The body as it came, where the route asks for that; else empty. */
  readonly bytes: Buffer
  readonly headers: IncomingHttpHeaders
  /** The client's address, as far as the trusted proxies tell. */
  readonly ip: string
  readonly userAgent: string
  /** One request header, or undefined. */
  readonly header: (name: string) => string | undefined
}

export interface Reply {
  readonly status: number
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

export interface Route<
  Kind extends CallerKind = CallerKind,
  Params extends Shape = Shape,
  Query extends Shape = Shape,
  Body extends Shape = Shape,
> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below `/api/v1`, with parameters as `{name}`. */
  readonly path: string
  readonly summary: string
  readonly caller: Kind
  /** Counted per user when the caller is one, else per address. */
  readonly limit?: RateLimitName
  /** The handler counts it itself, since not every request counts. */
  readonly countsItself?: true
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** Instead of a body to be parsed: its bytes, of any content type, and no more than this many. */
  readonly bytesMax?: number
  /** Request headers that matter, with what they are for. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  /** Success statuses with their bodies; null for none. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>
  /** The codes that it may refuse with, besides those that every route has. */
  readonly refuses: readonly RefusalCode[]
  /** The reply carries a secret and is kept by no cache. */
  readonly secret?: true
  handle(
    request: Request<Kind, z.output<Params>, z.output<Query>, z.output<Body>>,
    services: Services,
  ): Promise<Reply> | Reply
}

/** Declares a route; only here so that its handler's types follow from its schemas. */
export const route = <
  const Kind extends CallerKind,
  Params extends Shape = z.ZodType<Record<string, never>>,
  Query extends Shape = z.ZodType<Record<string, never>>,
  Body extends Shape = z.ZodType<Record<string, never>>,
>(
  declaration: Route<Kind, Params, Query, Body>,
): Route => declaration as unknown as Route

export const ok = (body: object): Reply => ({ status: 200, body })
export const created = (body: object): Reply => ({ status: 201, body })
export const accepted = (): Reply => ({ status: 202, body: {} })
export const noContent = (): Reply => ({ status: 204 })
