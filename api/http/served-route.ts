/** A route as it is served, whatever it is about. */
import type { z } from 'zod'
import type { Deprecation } from './deprecation.ts'
import type { RefusalCode } from './refusals.ts'
import type { Reply } from './replies.ts'
import type { Credentials, Request } from './requests.ts'

/** A schema of path parameters, query or body. */
export type ObjectSchema = z.ZodType<Record<string, unknown>>

export interface ServedRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the base path, with parameters as `{name}`. */
  readonly path: string
  readonly params?: ObjectSchema
  readonly query?: ObjectSchema
  readonly body?: ObjectSchema
  /** Set instead of `body` for a raw body of any content type, with this size limit. */
  readonly bytesMax?: number
  /** What is said of a raw body beside its size; without it the reference describes JSON. */
  readonly rawBody?: RawBody
  /** Sets `Cache-Control: no-store`, because the response contains a secret. */
  readonly secret?: true
  /** Set for a route that is going to be left out: every reply says since when, and when that may happen. */
  readonly deprecated?: Deprecation
  /** Whether browsers add the credentials by themselves. Then pages of other sites must not be able to send writes. */
  readonly hasAmbientCredentials: boolean
  /** Refuses the request, or passes what is known of its caller on to the handler. */
  admit(credentials: Credentials): Promise<Admitted>
  handle(request: Request): Promise<Reply> | Reply
}

export interface RawBody {
  readonly contentTypes: readonly string[]
  /** The refusal in place of `payload_too_large`. */
  readonly tooLarge: { readonly code: RefusalCode; readonly message: string }
}

export interface Admitted {
  readonly caller: unknown
  readonly read: unknown
  /** Of the response. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Called before the request is refused for another reason: refuses a caller who is not admitted after all. */
  readonly confirm?: () => Promise<unknown>
}
