/** A route as data: the source of the router, the OpenAPI document, the rate limits and the documentation page. */
import type { IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import type { RateLimitName } from '../../platform/config/values.ts'
import type { User } from '../identity/access-tokens.ts'
import type { Services } from '../services.ts'
import type { RefusalCode } from './refusals.ts'

export interface Callers {
  none: undefined
  user: User
  /** Signed in or not. An invalid token is refused. */
  maybe_user: User | undefined
  operator: 'operator'
  relay: 'relay'
}

export type CallerKind = keyof Callers

/** The parts of a request that authenticate its caller. */
export interface Credentials {
  readonly ip: string
  readonly header: (name: string) => string | undefined
}

/** A schema of an object: path parameters, query or body. */
type Shape = z.ZodType<Record<string, unknown>>

export interface Request<Kind extends CallerKind, Params, Query, Body> {
  readonly caller: Callers[Kind]
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The raw body if the route sets `bytesMax`, else empty. */
  readonly bytes: Buffer
  readonly headers: IncomingHttpHeaders
  /** The client's address according to the trusted proxies. */
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
  /** The rate limit, per user for authenticated users, else per address. */
  readonly limit?: RateLimitName
  /** The handler counts requests itself, because not every request counts. */
  readonly countsItself?: true
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** Passes the raw body of any content type, up to this many bytes, instead of a parsed one. */
  readonly bytesMax?: number
  /** Request headers with their descriptions. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  /** Success statuses with the schemas of their bodies; null for no body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>
  /** Error codes, besides those of every route. */
  readonly refuses: readonly RefusalCode[]
  /** The response has a secret and must not be cached. */
  readonly secret?: true
  handle(
    request: Request<Kind, z.output<Params>, z.output<Query>, z.output<Body>>,
    services: Services,
  ): Promise<Reply> | Reply
}

/** Declares a route. Infers the types of its handler from its schemas. */
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
