/** The typed client of the API. `api-types.ts` is generated from docs/openapi.json by `npm run generate`. */
import createClient, { type Client } from 'openapi-fetch'
import { ApiError, PathParameterError } from './api-error.ts'
import type { paths } from './api-types.ts'
import { completeFetch, type Fetch, repeatingFetch, type TimeoutMillis } from './complete-fetch.ts'

export type ApiClient = Client<paths, 'application/json'>

export interface ApiClientOptions {
  /** The address of the API, without `/api/v1`. */
  readonly baseUrl: string
  /** Of every request, for example {@link bearer} or {@link operatorCredentials}. */
  readonly headers?: Readonly<Record<string, string>>
  readonly fetch?: Fetch
  /** Of one attempt. 15 s by default. */
  readonly timeoutMillis?: TimeoutMillis
  /**
   * How long to repeat requests while there is no reply, or the reply is 503 or 429. 0 by default. For a client whose
   * requests are all safe to repeat; for a single request see {@link repeatFor}.
   */
  readonly retryMillisMax?: number
  /** The segment of a path for a parameter. By default {@link encodeSegment}. */
  readonly serializeSegment?: (value: string, name: string) => string
  /** The query without its question mark. By default all values are sent except undefined and null. */
  readonly serializeQuery?: (query: Record<string, unknown>) => string
}

const timeoutMillisDefault = 15_000

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

export const operatorCredentials = (password: string) => ({
  authorization: `Basic ${Buffer.from(`operator:${password}`).toString('base64')}`,
})

/**
 * A client with one method for each HTTP method. Its requests reject with `ApiUnreachableError` when no complete reply
 * comes, with `ApiError` when the reply cannot be one of the API, and with `PathParameterError`; refusals resolve with
 * `error`, see `expectSuccess`.
 */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const { baseUrl, headers = {}, retryMillisMax = 0, serializeSegment = encodeSegment, serializeQuery } = options
  const once = completeFetch(options.timeoutMillis ?? timeoutMillisDefault, options.fetch)
  const client = createClient<paths, 'application/json'>({
    baseUrl: baseUrl.replace(/\/+$/, ''),
    headers,
    fetch: retryMillisMax === 0 ? once : repeatingFetch(retryMillisMax, once),
    pathSerializer: (pathname, parameters) =>
      pathname.replaceAll(/\{([^{}]+)\}/g, (_, name: string) =>
        serializeSegment(String(parameters[name] ?? ''), `${name} of ${pathname}`),
      ),
    ...(serializeQuery ? { querySerializer: serializeQuery } : {}),
  })
  client.use({ onResponse: ({ response, options: { parseAs } }) => refuseForeignReply(response, parseAs) })
  return client
}

/** The option of a single request that is safe to repeat: `client.POST(path, { body, ...repeatFor(70_000) })`. */
export const repeatFor = (retryMillisMax: number) => ({
  fetch: repeatingFetch(retryMillisMax, completeFetch(timeoutMillisDefault)),
})

/** Throws {@link PathParameterError} for values that lead to another path although they are encoded. */
function encodeSegment(value: string, name: string): string {
  if (value === '' || value === '.' || value === '..') throw new PathParameterError(`"${value}" cannot be the ${name}`)
  return encodeURIComponent(value)
}

/** Throws {@link ApiError} for a redirect, and for a successful reply that should be JSON and is not. */
function refuseForeignReply(response: Response, parseAs: string): undefined {
  const { status, headers } = response
  if (status >= 300 && status < 400) {
    const reason = `The address redirects to ${headers.get('location')}. Use that address.`
    throw new ApiError({ status, code: '', reason })
  }
  const isJson = headers.get('content-type')?.startsWith('application/json') ?? false
  const isEmpty = status === 204 || headers.get('content-length') === '0'
  if (parseAs === 'json' && response.ok && !isEmpty && !isJson)
    throw new ApiError({ status, code: '', reason: 'The reply is not JSON. Is this the address of the API?' })
  return undefined
}
