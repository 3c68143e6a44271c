/** The typed client with which pages call the API. Its requests go through the sender of `api.ts`. */
import createClient from 'openapi-fetch'
import type { paths } from '../client/api-types.ts'
import type { ApiClient } from '../client/client.ts'
import { type ApiRequest, type ApiResponse, ApiUnavailableError } from './api.ts'
import { isPlainSegment } from './plain-path.ts'

/** What a request of the client resolves with: `data` after a success, `error` after a refusal. */
export interface ApiResult<Data = unknown> {
  readonly data?: Data
  readonly error?: unknown
  readonly response: Response
}

/** @param path begins with `/api/v1/`, and ends with the query. */
export type Send = (method: string, path: string, request: Pick<ApiRequest, 'headers' | 'body'>) => Promise<ApiResponse>

/** Names no host, since the sender adds the address of the API. */
const origin = 'http://api.invalid'

/** No path of the API contains it, so that the sender refuses the path. `..` would be resolved before the sender sees it. */
const refusedSegment = '%'

/**
 * A client whose requests reject as those of `send` do. A path parameter that could lead to another resource gets 404 without a
 * request, and a query parameter without a value is not sent. `data` is an empty object for a success that is not JSON, as replies of
 * proxies are.
 */
export const createPageClient = (send: Send): ApiClient =>
  createClient<paths, 'application/json'>({
    baseUrl: origin,
    pathSerializer: serializePath,
    querySerializer: serializeQuery,
    fetch: async (request) => {
      const body = new Uint8Array(await request.arrayBuffer())
      const headers = Object.fromEntries(request.headers)
      const path = request.url.slice(origin.length)
      return toResponse(await send(request.method, path, { headers, body: body.length > 0 ? body : undefined }))
    },
  })

const serializePath = (pathname: string, parameters: Record<string, unknown>): string =>
  pathname.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => {
    const value = String(parameters[name] ?? '')
    return isPlainSegment(value) ? value : refusedSegment
  })

function serializeQuery(query: Record<string, unknown>): string {
  const values = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (isGiven(value)) values.set(name, String(value))
  return values.toString()
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== ''

const statusesWithoutBody = [204, 205, 304]

const toResponse = ({ status, headers, body }: ApiResponse): Response =>
  new Response(statusesWithoutBody.includes(status) ? null : JSON.stringify(body), { status, headers })

/**
 * The body of a reply that a page cannot do without.
 * @param purpose ends the message of the error, for example `a request of the account page`.
 * Throws {@link ApiUnavailableError} for any other status than 200.
 */
export function requireData<Data>({ data, response: { status } }: ApiResult<Data>, purpose: string): Data {
  if (status !== 200) throw new ApiUnavailableError(`the API replied ${status} to ${purpose}`)
  return data as Data
}

/** Code and message of an error reply. */
export function readApiError({ error: body }: Pick<ApiResult, 'error'>): { code: string; message: string } {
  const { error } = (body ?? {}) as { error?: { code?: string; message?: string } }
  return { code: error?.code ?? 'internal_error', message: error?.message ?? 'Something went wrong on our side.' }
}

/** A value that a visitor chose, for a request that has a fixed set of values: the API refuses any other. */
export const unchecked = <Value extends string>(value: string): Value => value as Value
