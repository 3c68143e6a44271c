/** Variants of `fetch` for the API's client: with a limit of time, and with repetition. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiUnreachableError, readRetryAfter } from './api-error.ts'

export type Fetch = (request: Request) => Promise<Response>

const retryMillis = 500
const repeatedStatuses = [503, 429]
const statusesWithoutBody = [204, 205, 304]

/** The limit of time of one attempt, in milliseconds. */
export type TimeoutMillis = number | ((request: Request) => number)

/**
 * A `fetch` that reads the whole body, so that a reply is either complete or an error. Does not follow redirects.
 * Rejects with {@link ApiUnreachableError}.
 */
export const completeFetch =
  (timeoutMillis: TimeoutMillis, fetch: Fetch = globalThis.fetch): Fetch =>
  async (request) => {
    const millis = typeof timeoutMillis === 'number' ? timeoutMillis : timeoutMillis(request)
    const controller = new AbortController()
    const cancel = () => controller.abort(request.signal.reason)
    request.signal.addEventListener('abort', cancel)
    const attempt = new Request(request, { signal: controller.signal, redirect: 'manual' })
    // Also keeps the attempt: Node collects a request as garbage while its reply is awaited, and then no signal aborts
    // it.
    const timer = setTimeout(
      (_: Request) => controller.abort(new Error(`no complete reply within ${millis} ms`)),
      millis,
      attempt,
    )
    try {
      request.signal.throwIfAborted()
      const response = await fetch(attempt)
      const { status, headers } = response
      const body = await response.arrayBuffer()
      return new Response(statusesWithoutBody.includes(status) ? null : body, { status, headers })
    } catch (error) {
      const { message, cause } = error as Error
      const reason = cause instanceof Error ? cause.message : message
      throw new ApiUnreachableError(`${withoutSecrets(request.url)} could not be reached: ${reason}`, { cause: error })
    } finally {
      clearTimeout(timer)
      request.signal.removeEventListener('abort', cancel)
    }
  }

/** Errors are logged, and the query and the token of a share link are secrets. */
const withoutSecrets = (url: string): string => url.replace(/\?.*$/s, '').replace(/(\/shared\/).*$/, '$1…')

/**
 * A `fetch` that repeats a request while there is no reply, or the reply is 503 or 429, after the time of
 * `Retry-After`. A request whose reply was lost is repeated too, so it must be safe to repeat.
 * @param retryMillisMax no attempt starts later than this after the first.
 */
export const repeatingFetch =
  (retryMillisMax: number, fetch: Fetch): Fetch =>
  async (request) => {
    const deadline = Date.now() + retryMillisMax
    for (;;) {
      // A request with a body can be sent once.
      const attempt = await fetch(request.clone()).catch((error: Error) => error)
      const waitMillis = attempt instanceof Error ? retryMillis : (readRetryAfter(attempt) ?? 1) * 1000
      const isLast = request.signal.aborted || Date.now() + waitMillis > deadline
      if (attempt instanceof Error) {
        if (isLast) throw attempt
      } else if (isLast || !repeatedStatuses.includes(attempt.status)) return attempt
      await sleep(waitMillis, undefined, { signal: request.signal })
    }
  }
