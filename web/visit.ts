/** Builds the {@link Visit} that a page handles from a request. */
import type { Context } from 'koa'
import type { ApiClient } from '../client/client.ts'
import type { SiteConfig } from '../platform/config/site.ts'
import { clientAddress } from '../platform/koa/client-address.ts'
import { type Api, readJson, type Visitor } from './api.ts'
import { readApiError } from './api-client.ts'
import { readReferencePage } from './api-reference.ts'
import { isExpired, readAccessToken, readCookie } from './cookies.ts'
import { createOperatorClient } from './operator-session.ts'
import type { PageRoute, Visit } from './page.ts'
import { parseForm, readFormWithFiles, readRequestBody } from './request-body.ts'

/** The API rejected the access token of the request. */
export class SignInExpiredError extends Error {
  override name = 'SignInExpiredError'
}

export const isSignedIn = (ctx: Context): boolean => readAccessToken(ctx) !== undefined

export const hasExpiredAccessToken = (ctx: Context): boolean => {
  const token = readAccessToken(ctx)
  return token !== undefined && isExpired(token)
}

export const visitorOf = (ctx: Context): Visitor => ({
  ip: clientAddress(ctx),
  userAgent: ctx.get('user-agent').slice(0, 256),
})

interface Deps {
  readonly api: Api
  readonly config: SiteConfig
}

export async function createVisit(
  ctx: Context,
  { api, config }: Deps,
  { hasFiles }: Pick<PageRoute, 'hasFiles'>,
): Promise<Visit> {
  const bearer = readAccessToken(ctx)
  const visitor = visitorOf(ctx)
  const form = ctx.method === 'POST' && !hasFiles ? parseForm(await readRequestBody(ctx.req)) : new URLSearchParams()
  return {
    params: ctx.params as Record<string, string>,
    query: new URLSearchParams(ctx.search),
    form,
    readFormWithFiles: (bytesMax) => readFormWithFiles(ctx.req, bytesMax),
    origin: new URL(config.siteUrl).origin,
    host: ctx.host,
    config,
    visitor,
    isSignedIn: bearer !== undefined,
    cookie: (name) => readCookie(ctx.get('cookie'), name) || undefined,
    api: refusingExpiredSignIn(api.client({ visitor, bearer })),
    anonymousApi: api.client({ visitor }),
    operatorApi: createOperatorClient(ctx, api, visitor),
    readReference: () => readReferencePage(config.apiUrl),
  }
}

function refusingExpiredSignIn(client: ApiClient): ApiClient {
  client.use({
    onResponse: async ({ response }) => {
      if (response.status === 401 && readApiError({ error: await readJson(response.clone()) }).code === 'unauthorized')
        throw new SignInExpiredError('the API rejected the access token')
    },
  })
  return client
}
