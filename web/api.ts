/** The HTTP client with which the site calls the API on behalf of a visitor. */
import { isPlainPath } from './plain-path.ts'

/** The client of the site. The API limits and audits requests by this address, as if the visitor had sent them directly. */
export interface Visitor {
  readonly ip: string
  readonly userAgent: string
}

export interface ApiRequest {
  readonly visitor: Visitor
  /** The visitor's access token. */
  readonly bearer?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or unchanged when it is bytes. */
  readonly body?: object | Uint8Array | undefined
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Headers
  /** Parsed when the content type is JSON; an empty object otherwise. */
  readonly body: unknown
  readonly bytes: Uint8Array
}

export interface Api {
  /**
   * @param path begins with `/api/v1/`. A path that the API cannot have gets a 404 without a request.
   * Rejects with {@link ApiUnavailableError}.
   */
  call(method: string, path: string, request: ApiRequest): Promise<ApiResponse>
}

/** The API cannot be reached, or did not reply in time, or not as documented. */
export class ApiUnavailableError extends Error {
  override name = 'ApiUnavailableError'
}

export interface ApiTimeouts {
  /** Of requests that the API answers from its database. */
  readonly millis: number
  /** Of requests during which the API may call another service, or wait for a workflow or for a password to be hashed. */
  readonly slowMillis: number
}

const defaultTimeouts: ApiTimeouts = { millis: 5000, slowMillis: 20_000 }

const slowPaths = /^\/api\/v1\/(admin|billing|auth\/(oauth|merge|login|signup|password|email|account))(\/|$)/

export const createApi = (apiUrl: string, timeouts: ApiTimeouts = defaultTimeouts): Api => ({
  call: async (method, path, request) => {
    // A path can contain what a visitor typed, which must not lead to another resource.
    if (!isPlainPath(path.split('?')[0] ?? '')) return notFound
    let reply: ApiResponse
    try {
      const response = await fetch(apiUrl + path, {
        method,
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutOf(method, path, timeouts)),
        ...requestInit(request),
      })
      const bytes = new Uint8Array(await response.arrayBuffer())
      reply = parseReply(response.status, response.headers, bytes)
    } catch (error) {
      throw new ApiUnavailableError('the API did not reply', { cause: error })
    }
    if (proxyFailures.has(reply.status) && !isApiError(reply.body))
      throw new ApiUnavailableError(`a proxy replied ${reply.status} for the API`)
    return reply
  },
})

/** Bad Gateway and Gateway Timeout: also what a proxy replies that does not reach the API. */
const proxyFailures: ReadonlySet<number> = new Set([502, 504])
const isApiError = (body: unknown): boolean => typeof body === 'object' && body !== null && 'error' in body

const timeoutOf = (method: string, path: string, { millis, slowMillis }: ApiTimeouts): number =>
  method !== 'GET' && slowPaths.test(path.split('?')[0] ?? '') ? slowMillis : millis

type RequestParts = { headers: Record<string, string>; body?: BodyInit }

function requestInit({ visitor, bearer, headers = {}, body }: ApiRequest): RequestParts {
  const isJson = body !== undefined && !(body instanceof Uint8Array)
  return {
    headers: visitorHeaders(visitor, bearer, { ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers }),
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : (body as Uint8Array<ArrayBuffer>) }),
  }
}

/** The headers that describe the visitor, and others. Characters that a header cannot hold are removed: visitors may send them. */
export function visitorHeaders(
  visitor: Visitor,
  bearer: string | undefined,
  others: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const all = {
    accept: 'application/json',
    'user-agent': visitor.userAgent,
    // The only entry: the site has already evaluated the header that came with the request.
    'x-forwarded-for': visitor.ip,
    ...others,
    ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
  }
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, headerText(value)]))
}

/** Without the characters that a header cannot hold. */
export const headerText = (value: string): string => value.replaceAll(/[^ -~]/g, '')

const notFound: ApiResponse = {
  status: 404,
  headers: new Headers(),
  body: { error: { code: 'not_found', message: 'Not found.' } },
  bytes: new Uint8Array(),
}

/** Throws on invalid JSON. */
export const parseReply = (status: number, headers: Headers, bytes: Uint8Array): ApiResponse => ({
  status,
  headers,
  bytes,
  body:
    bytes.length > 0 && headers.get('content-type')?.startsWith('application/json')
      ? JSON.parse(new TextDecoder().decode(bytes))
      : {},
})
