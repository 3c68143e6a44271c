/** How the site calls the API on behalf of a visitor. */
import { type ApiClient, bearer as bearerOf, createApiClient } from '../client/client.ts'
import { completeFetch, type Fetch } from '../client/complete-fetch.ts'
import { isPlainPath, isPlainSegment } from './plain-path.ts'

/**
 * The client of the site. The API limits and audits requests by this address, as if the visitor had sent them directly.
 */
export interface Visitor {
  readonly ip: string
  readonly userAgent: string
}

export interface Caller {
  readonly visitor: Visitor
  /** The visitor's access token. */
  readonly bearer?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

export interface Api {
  /**
   * The client of a page. A path parameter that could lead to another resource gets 404 without a request, and a query
   * parameter without a value is not sent. Nothing is repeated, since a person waits.
   */
  client(caller: Caller): ApiClient
  /**
   * @param path begins with `/api/v1/`. A path that the API cannot have gets a 404 without a request.
   * Rejects with `ApiUnreachableError`.
   */
  forward(method: string, path: string, request: Caller & { readonly body?: Uint8Array | undefined }): Promise<Response>
}

export interface ApiTimeouts {
  /** Of requests that the API answers from its database. */
  readonly millis: number
  /**
   * Of requests during which the API may call another service, or wait for a workflow, for a password to be hashed or
   * for an image to be converted.
   */
  readonly slowMillis: number
}

const defaultTimeouts: ApiTimeouts = { millis: 5000, slowMillis: 20_000 }

const slowPaths =
  /\/api\/v1\/(admin|billing|relay\/connections\/[^/]+\/slate|auth\/(oauth|merge|login|signup|password|email|account))(\/|$)/

export function createApi(apiUrl: string, { millis, slowMillis }: ApiTimeouts = defaultTimeouts): Api {
  const timeoutMillis = ({ method, url }: Request): number =>
    method !== 'GET' && slowPaths.test(new URL(url).pathname) ? slowMillis : millis
  const send = completeFetch(timeoutMillis, fetchFromApi)
  return {
    client: (caller) =>
      createApiClient({
        baseUrl: apiUrl,
        headers: visitorHeaders(caller),
        fetch: fetchFromApi,
        timeoutMillis,
        serializeSegment: (value) => (isPlainSegment(value) ? value : refusedSegment),
        serializeQuery,
      }),
    forward: async (method, path, { body, ...caller }) =>
      // Before `Request` resolves dot segments.
      isPlainPath(path.split('?')[0] ?? '')
        ? send(
            new Request(apiUrl + path, { method, headers: visitorHeaders(caller), body: (body ?? null) as BodyInit }),
          )
        : notFound(),
  }
}

/** No path of the API contains it. `..` would be resolved before the path is checked. */
const refusedSegment = '%'

function serializeQuery(query: Record<string, unknown>): string {
  const values = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (isGiven(value)) values.set(name, String(value))
  return values.toString()
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== ''

/** Rejects for what is no reply of the API. */
const fetchFromApi: Fetch = async (request) => {
  if (!isPlainPath(new URL(request.url).pathname)) return notFound()
  const response = await fetch(request)
  const body = await readJson(response.clone())
  if (proxyFailures.has(response.status) && !isApiError(body))
    throw new Error(`a proxy replied ${response.status} for the API`)
  return response
}

/** Bad Gateway and Gateway Timeout: also what a proxy replies that does not reach the API. */
const proxyFailures: ReadonlySet<number> = new Set([502, 504])
const isApiError = (body: unknown): boolean => typeof body === 'object' && body !== null && 'error' in body

/** The body when the content type is JSON; undefined otherwise. Throws on invalid JSON. */
export async function readJson(response: Response): Promise<unknown> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  return isJson && text !== '' ? JSON.parse(text) : undefined
}

const notFound = (): Response => Response.json({ error: { code: 'not_found', message: 'Not found.' } }, { status: 404 })

/**
 * The headers that describe the visitor, and others. Characters that a header cannot hold are removed: visitors may
 * send them.
 */
export function visitorHeaders({ visitor, bearer, headers = {} }: Caller): Record<string, string> {
  const all = {
    accept: 'application/json',
    'user-agent': visitor.userAgent,
    // The only entry: the site has already evaluated the header that came with the request.
    'x-forwarded-for': visitor.ip,
    ...headers,
    ...(bearer ? bearerOf(bearer) : {}),
  }
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, headerText(value)]))
}

/** Without the characters that a header cannot hold. */
export const headerText = (value: string): string => value.replaceAll(/[^ -~]/g, '')
