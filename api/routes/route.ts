/**
 * Declarations of routes: the router, the rate limits, the OpenAPI document and the docs page are derived from them.
 */
import type { z } from 'zod'
import type { AdmissionTerms, ReadName, Reads } from '../admission/admission.ts'
import type { CallerKind, Callers } from '../admission/callers.ts'
import type { OperationText } from '../http/operation-text.ts'
import type { RefusalCode } from '../http/refusals.ts'
import type { Reply } from '../http/replies.ts'
import type { Request } from '../http/requests.ts'
import type { ObjectSchema, ServedRoute } from '../http/served-route.ts'
import type { Services } from '../services.ts'

/** A schema of path parameters, which `Name` names. */
type ParamsSchema<Name extends string> = z.ZodObject<Readonly<Record<Name, z.ZodType>>>

type ReadOf<Name> = Name extends ReadName ? Reads[Name] : undefined

interface Parts<
  Kind extends CallerKind,
  Params extends ObjectSchema,
  Query extends ObjectSchema,
  Body extends ObjectSchema,
  Name extends ReadName | undefined,
> extends OperationText,
    Pick<ServedRoute, 'bytesMax' | 'rawBody' | 'secret' | 'deprecated'> {
  /** For the caller `user`: read in the statement that admits the request, and so without another round trip. */
  readonly reads?: Name
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** Required request headers. */
  readonly requestHeaders?: Readonly<Record<string, { readonly description: string; readonly example: string }>>
  /** Optional request headers and their descriptions. */
  readonly optionalHeaders?: Readonly<Record<string, string>>
  /** The success statuses and the schemas of their bodies, or a content type that is not JSON; null for no body. */
  readonly answers: Readonly<Record<number, z.ZodType | string | null>>
  /** Headers of successes beside those of every operation, by status. */
  readonly replyHeaders?: Readonly<Record<number, readonly ('Idempotent-Replayed' | 'ETag')[]>>
  /** Set for errors as OAuth has them; see `api/http/app.ts`. */
  readonly errors?: 'flat'
  /** The error codes of the route, in addition to those of every route: see `api/openapi/replies.ts`. */
  readonly refuses: readonly RefusalCode[]
  handle(
    request: Request<Callers[Kind], z.output<Params>, z.output<Query>, z.output<Body>, ReadOf<Name>>,
    services: Services,
  ): Promise<Reply> | Reply
}

/**
 * What a route takes, answers and does. `api/routes.ts` adds its method, path, caller and limit. Both must agree on the
 * kind of caller and on the names of the path parameters.
 */
export interface Declaration<in out Kind extends CallerKind, in out ParamName extends string>
  extends Parts<Kind, ParamsSchema<ParamName>, ObjectSchema, ObjectSchema, ReadName | undefined> {}

export interface Route
  extends Pick<ServedRoute, 'method' | 'path'>,
    Omit<AdmissionTerms, 'reads'>,
    Parts<CallerKind, ObjectSchema, ObjectSchema, ObjectSchema, ReadName | undefined> {}

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
  app: declare<'app'>(),
  userOrApp: declare<'user_or_app'>(),
  operator: declare<'operator'>(),
  relay: declare<'relay'>(),
  relayWatcher: declare<'relay_watcher'>(),
}
