/** The cookie with the token of an operator session, and requests to the API with it. */
import type { Context } from 'koa'
import type { ApiClient } from '../client/client.ts'
import { type Api, ApiUnavailableError, type Visitor } from './api.ts'
import { createPageClient } from './api-client.ts'
import { type Cookie, readCookie } from './cookies.ts'

export const operatorCookieName = 'svc_operator'
/** Browsers send the cookie to the pages of the console only. */
const path = '/operator'

export const operatorCookie = (token: string, maxAgeSeconds: number): Cookie => ({
  name: operatorCookieName,
  value: token,
  path,
  maxAgeSeconds,
  sameSite: 'Strict',
})

export const endedOperatorCookie = operatorCookie('', 0)

export function readOperatorToken(ctx: Context): string | undefined {
  const value = readCookie(ctx.get('cookie'), operatorCookieName)
  return value && /^[\w-]{43}$/.test(value) ? value : undefined
}

/** The API rejected the token of the operator session. */
export class OperatorSessionEndedError extends Error {
  override name = 'OperatorSessionEndedError'
}

/** The API has no such resource, or has no routes for operators at all. */
export class NotFoundForOperatorError extends Error {
  override name = 'NotFoundForOperatorError'
}

/** Set by the script that refreshes a page, so that a page left open does not prolong the operator session. */
const unattendedHeader = 'x-unattended'

/** @returns a client that calls the API as the operator of the request. */
export const createOperatorClient = (ctx: Context, api: Api, visitor: Visitor): ApiClient =>
  createPageClient(async (method, path, { headers, body }) => {
    const isUnattended = ctx.get(unattendedHeader) !== ''
    const response = await api.call(method, path, {
      visitor,
      bearer: readOperatorToken(ctx),
      headers: { ...headers, ...(isUnattended ? { [unattendedHeader]: 'true' } : {}) },
      body,
    })
    // Only wrong tokens are limited.
    const isRefused = response.status === 401 || response.status === 429
    if (isRefused) throw new OperatorSessionEndedError('the API rejected the operator token')
    if (response.status === 503 && method === 'GET') throw new ApiUnavailableError('the API is not available')
    if (response.status === 404) throw new NotFoundForOperatorError('the API has no such resource')
    return response
  })
