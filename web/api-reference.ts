/**
 * The API reference on the site's origin: its page, its files and `/openapi.json` from the API. Requests that are tried
 * out there go to `/api/v1/*` of the site, with the visitor's sign-in.
 */
import { type IncomingHttpHeaders, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { ApiUnreachableError } from '../client/api-error.ts'
import type { RenderedPage } from './page.ts'

export const referencePath = '/docs'
/** Exact, so that no spelling of a path reaches another page of the API. */
const filePath = /^\/docs\/[0-9a-f]{12}\/[a-z-]+\.(js|css|svg)$/
const timeoutMillis = 10_000

/** The reply headers that are forwarded. All others are those of the site. */
const forwardedHeaders = ['content-type', 'content-encoding', 'cache-control', 'vary'] as const

/** The files of the page, and the document. */
export function addReferenceFileRoutes(router: Router, apiUrl: string): void {
  for (const path of [filePath, '/openapi.json']) router.get(path, (ctx) => forward(ctx, apiUrl))
}

/** The document of the api by which the OBS source finds this service. */
export function addSourceDocumentRoute(router: Router, apiUrl: string): void {
  router.get('/.well-known/irl-source-provider.json', (ctx) => forward(ctx, apiUrl))
}

/** Rejects with `ApiUnreachableError`. */
export async function readReferencePage(apiUrl: string): Promise<RenderedPage> {
  const { status, headers, body } = await requestFile(apiUrl + referencePath, 'GET', 'identity')
  const contentSecurityPolicy = headers['content-security-policy']
  if (status !== 200 || typeof contentSecurityPolicy !== 'string')
    throw new ApiUnreachableError(`the API replied ${status} to a request of its reference`)
  return { html: body.toString('utf8'), contentSecurityPolicy }
}

async function forward(ctx: Context, apiUrl: string): Promise<void> {
  const { status, headers, body } = await requestFile(apiUrl + ctx.path, ctx.method, ctx.get('accept-encoding'))
  ctx.status = status
  for (const name of forwardedHeaders) {
    const value = headers[name]
    if (value !== undefined) ctx.set(name, value)
  }
  ctx.body = body
}

interface FileReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** As sent, which `fetch` would decompress. */
  readonly body: Buffer
}

/** Rejects with `ApiUnreachableError`. */
async function requestFile(url: string, method: string, acceptEncoding: string): Promise<FileReply> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const signal = AbortSignal.timeout(timeoutMillis)
  try {
    return await new Promise((resolve, reject) => {
      const headers = { 'accept-encoding': acceptEncoding }
      request(url, { method, headers, signal }, (reply) => {
        buffer(reply).then((body) => resolve({ status: reply.statusCode ?? 502, headers: reply.headers, body }), reject)
      })
        .on('error', reject)
        .end()
    })
  } catch (error) {
    throw new ApiUnreachableError('the API did not reply', { cause: error })
  }
}
