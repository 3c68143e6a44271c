/**
 * The API reference on the site's origin: `/docs` with its files and `/openapi.json` as the API serves them. Requests that are
 * tried out there go to `/api/v1/*` of the site, with the visitor's sign-in.
 */
import { type IncomingHttpHeaders, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { ApiUnavailableError } from './api.ts'

const referencePath = '/docs'
/** Exact, so that no spelling of a path reaches another page of the API. */
const filePath = /^\/docs\/[0-9a-f]{12}\/[a-z-]+\.(js|css)$/
const timeoutMillis = 10_000

/** The reply headers that are forwarded. All others are those of the site. */
const forwardedHeaders = ['content-type', 'content-encoding', 'cache-control', 'vary'] as const

export function addReferenceRoutes(router: Router, apiUrl: string): void {
  for (const path of [referencePath, filePath, '/openapi.json']) router.get(path, (ctx) => forward(ctx, apiUrl))
}

async function forward(ctx: Context, apiUrl: string): Promise<void> {
  const { status, headers, body } = await requestFile(apiUrl + ctx.path, ctx.method, ctx.get('accept-encoding'))
  ctx.status = status
  for (const name of forwardedHeaders) {
    const value = headers[name]
    if (value !== undefined) ctx.set(name, value)
  }
  const policy = headers['content-security-policy']
  // Only this page needs inline styles.
  if (ctx.path === referencePath && typeof policy === 'string') ctx.set('Content-Security-Policy', policy)
  ctx.body = body
}

interface FileReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** As sent, which `fetch` would decompress. */
  readonly body: Buffer
}

/** Rejects with `ApiUnavailableError`. */
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
    throw new ApiUnavailableError('the API did not reply', { cause: error })
  }
}
