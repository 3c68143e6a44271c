/**
 * Requests to the Hetzner Cloud API, limited in time and by the rate limit that its replies report. No error contains
 * the token or another secret.
 */
import type { z } from 'zod'
import { withSignal } from '../../platform/timeout.ts'
import { HetznerApiError, meaningOf } from './hetzner-errors.ts'
import { ErrorReply } from './hetzner-shapes.ts'
import { RelayProviderError } from './provider.ts'

export interface HetznerClientOptions {
  /** `https://api.hetzner.cloud/v1` */
  readonly apiUrl: string
  readonly token: string
  readonly requestMillisMax: number
}

export interface HetznerRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the API's URL: `/servers`. */
  readonly path: string
  readonly query?: readonly (readonly [name: string, value: string])[]
  readonly body?: object
  readonly signal?: AbortSignal | undefined
  /** Parts of the body that must not appear in an error. */
  readonly secrets?: readonly string[]
}

export interface HetznerClient {
  /**
   * Rejects with {@link RelayProviderError}: a {@link HetznerApiError} when the API refused the request. When `signal`
   * is aborted, rejects with its reason; the API may have performed the request.
   */
  request<Shape extends z.ZodType>(request: HetznerRequest, shape: Shape): Promise<z.infer<Shape>>
  /** A text of the API for an error: shortened, without the token and the secrets. */
  quote(text: string, secrets?: readonly string[]): string
}

const quoteLengthMax = 300

export function createHetznerClient({ apiUrl, token, requestMillisMax }: HetznerClientOptions): HetznerClient {
  const rateLimit = new RateLimit()

  const quote = (text: string, secrets: readonly string[] = []): string =>
    [token, ...secrets]
      .filter((secret) => secret !== '')
      .reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), text)
      .slice(0, quoteLengthMax)

  return {
    quote,

    async request(request, shape) {
      rateLimit.assertAllowed()
      const { status, headers, body } = await send(request)
      rateLimit.observe(status, headers)
      if (status >= 200 && status < 300) {
        const parsed = shape.safeParse(body)
        if (parsed.success) return parsed.data
        const field = parsed.error.issues[0]?.path.join('.') || 'the body'
        throw new RelayProviderError(`Hetzner did not answer ${nameOf(request)} as documented: ${field}`)
      }
      throw refusalOf(request, status, body, rateLimit.pauseSeconds())
    },
  }

  async function send(request: HetznerRequest) {
    const { method, path, query = [], body, signal } = request
    signal?.throwIfAborted()
    const url = new URL(`${apiUrl.replace(/\/+$/, '')}${path}`)
    for (const [name, value] of query) url.searchParams.append(name, value)
    try {
      return await withSignal(requestMillisMax, signal, async (limited) => {
        const response = await fetch(url, {
          method,
          headers: {
            authorization: `Bearer ${token}`,
            accept: 'application/json',
            ...(body ? { 'content-type': 'application/json' } : {}),
          },
          ...(body ? { body: JSON.stringify(body) } : {}),
          // A redirect would send the token to another address.
          redirect: 'manual',
          signal: limited,
        })
        const text = await response.text()
        return { status: response.status, headers: response.headers, body: parseJson(text) }
      })
    } catch (error) {
      signal?.throwIfAborted()
      const name = nameOf(request)
      // Not as the cause, since some errors of fetch contain the headers.
      throw (error as Error).name === 'TimeoutError'
        ? new RelayProviderError(`Hetzner did not answer ${name} within ${requestMillisMax / 1000} s`)
        : new RelayProviderError(`Hetzner could not be reached for ${name}: ${codeOf(error)}`)
    }
  }

  function refusalOf(request: HetznerRequest, status: number, body: unknown, retryAfterSeconds: number) {
    const { error } = ErrorReply.safeParse(body).data ?? { error: { code: '', message: '' } }
    const { failure, detail, hint } = meaningOf(error.code, error.message, status)
    const text = quote(`${error.code} ${error.message}`.trim(), request.secrets)
    const parts = [`Hetzner answered ${nameOf(request)} with ${status}`, text, hint]
    return new HetznerApiError(parts.filter(Boolean).join(': '), status, error.code, failure, {
      ...(detail ? { detail } : {}),
      ...(failure === 'throttled' ? { retryAfterSeconds } : {}),
    })
  }
}

/**
 * The pause after replies that report an exhausted limit. The limit counts the requests of a project, from all
 * processes.
 */
class RateLimit {
  #blockedUntil = 0

  /** The full limit returns within an hour, but a part of it each second, so longer pauses are of no use. */
  static readonly pauseSecondsMax = 60

  assertAllowed(): void {
    if (Date.now() >= this.#blockedUntil) return
    throw new RelayProviderError('the rate limit of the Hetzner API is exhausted', 'throttled', {
      retryAfterSeconds: this.pauseSeconds(),
    })
  }

  observe(status: number, headers: Headers): void {
    const isExhausted = headers.get('ratelimit-remaining')?.trim() === '0'
    if (status !== 429 && !isExhausted) return
    const seconds = secondsUntil(headers.get('retry-after')) ?? secondsUntilReset(headers) ?? RateLimit.pauseSecondsMax
    const pauseSeconds = Math.min(Math.max(seconds, 1), RateLimit.pauseSecondsMax)
    this.#blockedUntil = Math.max(this.#blockedUntil, Date.now() + pauseSeconds * 1000)
  }

  pauseSeconds(): number {
    return Math.max(1, Math.ceil((this.#blockedUntil - Date.now()) / 1000))
  }
}

/** `Retry-After`: seconds, or a date. */
function secondsUntil(text: string | null): number | undefined {
  if (text === null) return undefined
  if (/^\d+$/.test(text.trim())) return Number(text)
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : (at - Date.now()) / 1000
}

/** `RateLimit-Reset`: seconds since 1970. */
function secondsUntilReset(headers: Headers): number | undefined {
  const text = headers.get('ratelimit-reset')
  return text !== null && /^\d+$/.test(text.trim()) ? Number(text) - Date.now() / 1000 : undefined
}

const nameOf = ({ method, path }: Pick<HetznerRequest, 'method' | 'path'>): string => `${method} ${path}`

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function codeOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: unknown }; name?: string }
  return typeof cause?.code === 'string' ? cause.code : (name ?? 'unknown error')
}
