/**
 * Responses of the routes and of refusals. Status and headers are passed to Node in one step: Koa stores and checks
 * each header by itself, at a multiple of the cost.
 */
import type { Context } from 'koa'
import { listSecurityHeaders } from '../../platform/koa/security-headers.ts'
import type { BytesBody, TextBody } from './replies.ts'

type Headers = Readonly<Record<string, string>>

/** Names and values in turn, as `writeHead` takes them. */
const securityHeaders: readonly string[] = Object.entries(
  listSecurityHeaders({
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    resourcePolicy: 'same-site',
    requiresHttps: true,
  }),
).flat()

/** Begins the headers of a response, which has them besides the security headers, whatever its status. */
export function beginHeaders(ctx: Context, headers: Headers): void {
  ctx.state.headers = { ...headers }
}

/** Adds headers to the response, also if the request is refused later. */
export function addHeaders(ctx: Context, headers: Headers): void {
  const present = ctx.state.headers as Record<string, string>
  for (const name in headers) present[name] = headers[name] as string
}

/** Sends the response, as JSON if it has a body. */
export const send = (ctx: Context, status: number, body?: object): void =>
  sendText(ctx, status, body && { contentType: 'application/json; charset=utf-8', text: JSON.stringify(body) })

export function sendText(ctx: Context, status: number, body: TextBody | undefined): void {
  ctx.respond = false
  const headers = listHeaders(ctx)
  if (body === undefined) ctx.res.writeHead(status, headers).end()
  else {
    headers.push('Content-Type', body.contentType, 'Content-Length', String(Buffer.byteLength(body.text)))
    ctx.res.writeHead(status, headers).end(body.text)
  }
}

export function sendBytes(ctx: Context, status: number, { contentType, bytes }: BytesBody): void {
  ctx.respond = false
  const headers = listHeaders(ctx)
  headers.push('Content-Type', contentType, 'Content-Length', String(bytes.length))
  ctx.res.writeHead(status, headers).end(bytes)
}

/** Sets the headers of a response that Koa sends, except those that its route has set. */
export function setHeaders(ctx: Context): void {
  const headers = listHeaders(ctx)
  for (let index = 0; index < headers.length; index += 2) {
    const [name, value] = headers.slice(index, index + 2) as [string, string]
    if (!ctx.res.hasHeader(name)) ctx.res.setHeader(name, value)
  }
}

function listHeaders({ state }: Context): string[] {
  const list = [...securityHeaders]
  for (const name in state.headers) list.push(name, state.headers[name])
  return list
}
