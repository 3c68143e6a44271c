/** The api as the site asks it: over REST, on behalf of a visitor. */
import { isPlainPath } from './plain-path.ts'

/** Whom the site asks for. The api counts and keeps the address as if the visitor had asked it. */
export interface Visitor {
  readonly ip: string
  readonly userAgent: string
}

export interface ApiRequest {
  readonly visitor: Visitor
  /** The visitor's access token. */
  readonly bearer?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or as they are when they are bytes. */
  readonly body?: object | Uint8Array | undefined
}

export interface ApiResponse<Body = unknown> {
  readonly status: number
  readonly headers: Headers
  /** Parsed when it is JSON; an empty object when there is none. */
  readonly body: Body
  readonly bytes: Uint8Array
}

export interface Api {
  /**
   * @param path below the api's address, from `/api/v1/` on. One that the api can't have is answered as the api would.
   * Rejects with {@link ApiUnavailableError}.
   */
  call<Body = unknown>(method: string, path: string, request: ApiRequest): Promise<ApiResponse<Body>>
}

/** The api can't be reached, or not in time. */
export class ApiUnavailableError extends Error {
  override name = 'ApiUnavailableError'
}

const usualAnswerMillisMax = 20_000

export const createApi = (apiUrl: string, answerMillisMax = usualAnswerMillisMax): Api => ({
  call: async <Body>(method: string, path: string, request: ApiRequest) => {
    // Parts of it may be what a visitor wrote: they name a thing, and are no way to another one.
    if (!isPlainPath(path.split('?')[0] ?? '')) return nothingThere as ApiResponse<Body>
    try {
      const response = await fetch(apiUrl + path, {
        method,
        redirect: 'manual',
        signal: AbortSignal.timeout(answerMillisMax),
        ...requestInit(request),
      })
      const bytes = new Uint8Array(await response.arrayBuffer())
      return { status: response.status, headers: response.headers, bytes, body: parsed(response, bytes) as Body }
    } catch (error) {
      throw new ApiUnavailableError('the api did not answer', { cause: error })
    }
  },
})

function requestInit({ visitor, bearer, headers = {}, body }: ApiRequest): {
  headers: Record<string, string>
  body?: BodyInit
} {
  const isJson = body !== undefined && !(body instanceof Uint8Array)
  const all = {
    accept: 'application/json',
    'user-agent': visitor.userAgent,
    // The only entry: whatever the visitor claimed was judged where it came in.
    'x-forwarded-for': visitor.ip,
    ...(isJson ? { 'content-type': 'application/json' } : {}),
    ...headers,
    ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
  }
  return {
    // A visitor may send what no header of ours can hold.
    headers: Object.fromEntries(Object.entries(all).map(([name, value]) => [name, value.replaceAll(/[^ -~]/g, '')])),
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : (body as Uint8Array<ArrayBuffer>) }),
  }
}

const nothingThere: ApiResponse = {
  status: 404,
  headers: new Headers(),
  body: { error: { code: 'not_found', message: 'There is no such thing here.' } },
  bytes: new Uint8Array(),
}

const parsed = (response: Response, bytes: Uint8Array): unknown =>
  bytes.length > 0 && response.headers.get('content-type')?.startsWith('application/json')
    ? JSON.parse(new TextDecoder().decode(bytes))
    : {}

/** The sentence of the api's refusal, for a person to read. */
export const readApiError = ({ body }: ApiResponse): { code: string; message: string } => {
  const { error } = body as { error?: { code?: string; message?: string } }
  return { code: error?.code ?? 'internal_error', message: error?.message ?? 'Something went wrong on our side.' }
}
