/** Errors of requests to the API. */

export interface ApiErrorDetails {
  readonly status: number
  /** The `error.code` of the reply; empty when the reply is not one of the API, for example that of a proxy. */
  readonly code: string
  /** The `error.message` of the reply. */
  readonly reason: string
  /** From the header `Retry-After`; undefined without it. */
  readonly retryAfterSeconds?: number | undefined
  /** What was requested, as the start of the message: `The grant`. */
  readonly action?: string | undefined
}

/** The API refused a request, or replied otherwise than documented. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly reason: string
  readonly retryAfterSeconds: number | undefined

  constructor({ status, code, reason, retryAfterSeconds, action }: ApiErrorDetails) {
    const cause = [status, code].filter(Boolean).join(' ')
    super(`${action === undefined ? '' : `${action} failed: `}${cause}${reason === '' ? '' : `: ${reason}`}`)
    this.status = status
    this.code = code
    this.reason = reason
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** No complete reply came: the connection failed, or the time was over. */
export class ApiUnreachableError extends Error {
  override name = 'ApiUnreachableError'
}

/** A path parameter that no resource can have, so no request was sent. */
export class PathParameterError extends Error {
  override name = 'PathParameterError'
}

/** Whether the API refused a request that has to succeed, or cannot be reached. */
export const isApiFailure = (error: unknown): boolean =>
  error instanceof ApiError || error instanceof ApiUnreachableError

/** What a method of the client returns: `data` after a success, `error` after a refusal. */
export interface ApiResult<Data = unknown> {
  readonly data?: Data
  readonly error?: unknown
  readonly response: Response
}

/**
 * The body of a successful reply.
 * @param action starts the message of the error, for example `The grant`.
 * Throws {@link ApiError} for any other reply.
 */
export function expectSuccess<Data>(result: ApiResult<Data>, action?: string): Exclude<Data, undefined> {
  const { response } = result
  if (response.ok) return result.data as Exclude<Data, undefined>
  const { code = '', message = '' } = readErrorBody(result)
  const retryAfterSeconds = readRetryAfter(response)
  throw new ApiError({ status: response.status, code, reason: message, retryAfterSeconds, action })
}

/** Code and message of an error reply. Empty when the reply is not one of the API. */
export function readErrorBody({ error: body }: Pick<ApiResult, 'error'>): { code?: string; message?: string } {
  const { error } = (typeof body === 'object' && body !== null ? body : {}) as {
    error?: { code?: string; message?: string }
  }
  return error ?? {}
}

/** Seconds of the header `Retry-After`; undefined without it, or when it is a date, which the API does not send. */
export function readRetryAfter(response: Response): number | undefined {
  const seconds = Number.parseInt(response.headers.get('retry-after') ?? '', 10)
  return Number.isNaN(seconds) ? undefined : seconds
}
