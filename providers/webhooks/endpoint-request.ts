/** One POST request to an endpoint that a user has chosen. */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isTimeout, withSignal } from '../../platform/timeout.ts'
import { addressOf, type EndpointRules, refusedAddressText } from './endpoint-rules.ts'

/** A reply may ask for a pause of at most this length. */
const retryAfterSecondsMax = 3600

export interface EndpointReply {
  readonly status: number
  /** From `Retry-After`; null without a usable one. */
  readonly retryAfterSeconds: number | null
}

/** The message is shown to the endpoint's owner, so it contains neither the URL nor an address. */
export class EndpointUnreachableError extends Error {
  override name = 'EndpointUnreachableError'
}

interface EndpointRequest {
  /** The account of the endpoint. */
  readonly userId: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Resolves with any reply; its body is not read, and a redirect is not followed. The socket connects to the very
 * address that was checked: a name that resolves to another address a moment later (DNS rebinding) gains nothing.
 * Rejects with {@link EndpointUnreachableError}.
 */
export function postToEndpoint(
  { userId, url, headers, body }: EndpointRequest,
  rules: EndpointRules,
  stopping: AbortSignal,
): Promise<EndpointReply> {
  const address = addressOf(url)
  // Node connects to an address in the URL without a lookup.
  if (address !== undefined && !rules.isAllowedAddress(address))
    return Promise.reject(new EndpointUnreachableError(refusedAddressText))
  return withSignal(
    rules.replyMillisMax,
    stopping,
    (signal) =>
      new Promise((resolve, reject) => {
        const send = url.protocol === 'https:' ? requestHttps : requestHttp
        const request = send(url, {
          method: 'POST',
          // A connection of its own, which no earlier request has opened to an address that was allowed then.
          agent: false,
          lookup: checkedLookup(rules, userId),
          signal,
          headers: {
            'content-type': 'application/json',
            'user-agent': 'relay-notifications/1',
            'content-length': Buffer.byteLength(body),
            ...headers,
          },
        })
        // The listener stays: closing the connection after the reply may cause another error.
        request.on('error', (error) => reject(toUnreachable(error, isTimeout(signal) ? rules.replyMillisMax : null)))
        request.on('close', () =>
          reject(new EndpointUnreachableError('The endpoint closed the connection without a reply.')),
        )
        request.on('response', (response) => {
          response.on('error', () => {})
          resolve({
            status: response.statusCode ?? 0,
            retryAfterSeconds: parseRetryAfter(response.headers['retry-after']),
          })
          response.destroy()
        })
        request.end(body)
      }),
  )
}

/** Resolves as `rules` do, and fails when any of the addresses is not allowed. */
const checkedLookup =
  ({ resolve, isAllowedAddress }: EndpointRules, userId: string): LookupFunction =>
  (host, options, callback) => {
    resolve(host, userId).then(
      (addresses) => {
        const [first] = addresses
        if (!first || !addresses.every(({ address }) => isAllowedAddress(address)))
          callback(new EndpointUnreachableError(refusedAddressText), '', 0)
        else if (options.all) callback(null, [...addresses])
        else callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    )
  }

/** @param timeoutMillis of a request that took too long. */
function toUnreachable(error: NodeJS.ErrnoException, timeoutMillis: number | null): EndpointUnreachableError {
  if (error instanceof EndpointUnreachableError) return error
  if (timeoutMillis !== null)
    return new EndpointUnreachableError(`The endpoint did not reply within ${timeoutMillis / 1000} seconds.`)
  return new EndpointUnreachableError(`The connection failed (${error.code ?? error.name}).`)
}

function parseRetryAfter(value: string | undefined): number | null {
  if (value === undefined) return null
  const seconds = /^\d{1,9}(\.\d+)?$/.test(value.trim()) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.min(retryAfterSecondsMax, Math.max(0, Math.ceil(seconds))) : null
}
