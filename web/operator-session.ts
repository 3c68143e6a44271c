/** The cookie with the token of an operator session, and requests to the API with it. */
import type { Context } from 'koa'
import { ApiUnreachableError } from '../client/api-error.ts'
import type { ApiClient } from '../client/client.ts'
import type { Api, Visitor } from './api.ts'
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
export function createOperatorClient(ctx: Context, api: Api, visitor: Visitor): ApiClient {
  const headers: Record<string, string> = ctx.get(unattendedHeader) === '' ? {} : { [unattendedHeader]: 'true' }
  const client = api.client({ visitor, bearer: readOperatorToken(ctx), headers })
  client.use({
    onResponse: ({ request, response: { status } }) => {
      // Only wrong tokens are limited.
      if (status === 401 || status === 429) throw new OperatorSessionEndedError('the API rejected the operator token')
      if (status === 503 && request.method === 'GET') throw new ApiUnreachableError('the API is not available')
      if (status === 404) throw new NotFoundForOperatorError('the API has no such resource')
    },
  })
  return client
}
