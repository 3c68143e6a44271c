/** Routes: the router, the rate limits, the OpenAPI document and the docs page are derived from them. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { z } from 'zod'
import type { LiveRelays } from '../../db/relay/sessions.ts'
import type { RateLimitName } from '../../platform/config/values.ts'
import type { RelayCaller } from '../../providers/relay/instance-secrets.ts'
import type { TokenUser } from '../identity/access-tokens.ts'
import type { AccountSummary } from '../identity/account-summaries.ts'
import type { RelayWatcher } from '../live/relay-watcher.ts'
import type { Services } from '../services.ts'
import type { OperationText } from './operation-text.ts'
import type { RefusalCode } from './refusals.ts'

/** Whoever has the operator password, or the token of a session that was opened with it. */
export interface OperatorCaller {
  /** Undefined with the password. */
  readonly sessionId: string | undefined
}

export interface Callers {
  none: undefined
  user: TokenUser
  /** A user or no one. An invalid access token is refused. */
  maybe_user: TokenUser | undefined
  operator: OperatorCaller
  relay: RelayCaller
  relay_watcher: RelayWatcher
}

export type CallerKind = keyof Callers

/** The parts of a request that authenticate its caller. */
export interface Credentials {
  readonly ip: string
  readonly header: (name: string) => string | undefined
}

/** What a route can have read together with the admission of its caller. */
export interface Reads {
  live_relays: LiveRelays
  account_summary: AccountSummary
}

export type ReadName = keyof Reads

/** What a route names in `reads`, of the caller, as it was when the request was admitted. */
type ReadPart<Name> = [Name] extends [ReadName]
  ? { readonly read: Reads[Name] }
  : { readonly read?: Reads[ReadName] | undefined }

/** A schema of path parameters, query or body. */
type ObjectSchema = z.ZodType<Record<string, unknown>>

export interface Request<Kind extends CallerKind, Params, Query, Body> {
  readonly caller: Callers[Kind]
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The raw body if the route sets `bytesMax`, otherwise empty. */
  readonly bytes: Buffer
  readonly headers: IncomingHttpHeaders
  /** The client's address: from `X-Forwarded-For` as far as its proxies are trusted, otherwise the peer's. */
  readonly ip: string
  readonly userAgent: string
  readonly requestId: string
  /** The request as Node received it. A handler that takes its connection over returns the status 101. */
  readonly incoming: IncomingMessage
  /** Undefined for a missing or empty header. */
  readonly header: (name: string) => string | undefined
}

export interface Reply {
  readonly status: number
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** Time in which the handler waited for an event on purpose. It does not count as duration of the request. */
  readonly waitedSeconds?: number
}

/** A schema of path parameters, which `Name` names. */
type ParamsSchema<Name extends string> = z.ZodObject<Readonly<Record<Name, z.ZodType>>>

interface Parts<
  Kind extends CallerKind,
  Params extends ObjectSchema,
  Query extends ObjectSchema,
  Body extends ObjectSchema,
  Name extends ReadName | undefined,
> extends OperationText {
  /** For the caller `user`: read in the statement that admits the request, and so without another round trip. */
  readonly reads?: Name
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** Set instead of `body` for a raw body of any content type, with this size limit. */
  readonly bytesMax?: number
  /** Required request headers and their descriptions. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  /** Optional request headers and their descriptions. */
  readonly optionalHeaders?: Readonly<Record<string, string>>
  /** The success statuses and the schemas of their bodies; null for no body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>
  /** Headers of successes beside those of every operation, by status. */
  readonly replyHeaders?: Readonly<Record<number, readonly 'Idempotent-Replayed'[]>>
  /** The error codes of the route, in addition to those of every route: see `api/openapi/replies.ts`. */
  readonly refuses: readonly RefusalCode[]
  /** Sets `Cache-Control: no-store`, because the response contains a secret. */
  readonly secret?: true
  handle(
    request: Request<Kind, z.output<Params>, z.output<Query>, z.output<Body>> & ReadPart<Name>,
    services: Services,
  ): Promise<Reply> | Reply
}

/**
 * What a route takes, answers and does. `api/routes.ts` adds its method, path, caller and limit. Both must agree on the kind of caller
 * and on the names of the path parameters.
 */
export interface Declaration<in out Kind extends CallerKind, in out ParamName extends string>
  extends Parts<Kind, ParamsSchema<ParamName>, ObjectSchema, ObjectSchema, ReadName | undefined> {}

export interface Route extends Parts<CallerKind, ObjectSchema, ObjectSchema, ObjectSchema, ReadName | undefined> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below `/api/v1`, with parameters as `{name}`. */
  readonly path: string
  readonly caller: CallerKind
  /** Counted per user if `caller` is `user` or `relay_watcher`, otherwise per client network. */
  readonly limit?: RateLimitName
  /** This and the next: see the words for it in `surface.ts`. */
  readonly isCountedByHandler?: true
  readonly isSignInCheckedByHandler?: true
}

/** Infers the types of the handler from the schemas. */
const declare =
  <Kind extends CallerKind>() =>
  <
    Params extends ParamsSchema<string> = z.ZodObject<Record<never, never>>,
    Query extends ObjectSchema = z.ZodType<Record<string, never>>,
    Body extends ObjectSchema = z.ZodType<Record<string, never>>,
    const Name extends ReadName | undefined = undefined,
  >(
    parts: Parts<Kind, Params, Query, Body, Name>,
  ) =>
    parts as unknown as Declaration<Kind, keyof Params['shape'] & string>

/** Declares a route by the kind of caller that its handler expects. */
export const route = {
  none: declare<'none'>(),
  user: declare<'user'>(),
  maybeUser: declare<'maybe_user'>(),
  operator: declare<'operator'>(),
  relay: declare<'relay'>(),
  relayWatcher: declare<'relay_watcher'>(),
}

export const ok = (body: object): Reply => ({ status: 200, body })
export const created = (body: object): Reply => ({ status: 201, body })
export const accepted = (): Reply => ({ status: 202, body: {} })
export const noContent = (): Reply => ({ status: 204 })
