/** Reads request bodies with a size limit: as UTF-8 JSON for most routes, as raw bytes for signed ones. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { RouterContext } from '@koa/router'
import { koaBody } from 'koa-body'
import getRawBody from 'raw-body'
import { Refusal } from './refusals.ts'

export const bodyBytesMax = 64 * 1024

/** An empty encoding keeps the body as bytes. A decoder would replace invalid bytes without an error. */
const unpackBytes = koaBody({
  json: false,
  urlencoded: false,
  multipart: false,
  text: true,
  textTypes: ['json'],
  textLimit: String(bodyBytesMax),
  encoding: '',
})

/** JSON between systems is UTF-8 (RFC 8259, 8.1), of which ASCII is a part. */
const charsets = new Set(['', 'utf-8', 'utf8', 'us-ascii'])

/**
 * The parsed body; an empty object for an absent one, which a route accepts when it requires no field. Refuses with
 * `unsupported_media_type`, `payload_too_large` and `invalid_request`.
 */
export async function readJson(ctx: RouterContext): Promise<unknown> {
  if (isBodyAbsent(ctx.req)) return {}
  if (!ctx.is('json') || !charsets.has(ctx.request.charset.toLowerCase())) throw new Refusal('unsupported_media_type')
  const bytes = await readUnpacked(ctx)
  if (bytes.length === 0) return {}
  if (!isUtf8(bytes)) throw new Refusal('invalid_request', { message: 'The request body is not valid UTF-8.' })
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Refusal('invalid_request', { message: 'The request body is not valid JSON.' })
  }
}

/**
 * Refuses with `unsupported_media_type` unless the content type is JSON, even for an empty body: a form on another site's page
 * can send other types without a CORS preflight.
 */
export function requireJson(ctx: RouterContext): void {
  if (ctx.request.type.toLowerCase() !== 'application/json') throw new Refusal('unsupported_media_type')
}

async function readUnpacked(ctx: RouterContext): Promise<Buffer> {
  try {
    await unpackBytes(ctx as never, async () => {})
  } catch (error) {
    const status = (error as { status?: number }).status
    if (status === 413) throw new Refusal('payload_too_large', { headers: { Connection: 'close' } })
    if (status === 415) throw new Refusal('unsupported_media_type')
    throw new Refusal('invalid_request', {
      message: 'The request body is incomplete, or does not match its Content-Encoding.',
    })
  }
  return (ctx.request.body as unknown as Buffer | undefined) ?? Buffer.alloc(0)
}

/** The body exactly as it was sent, for a signature over it. Refuses with `payload_too_large` and `invalid_request`. */
export async function readBytes(req: IncomingMessage, bytesMax: number): Promise<Buffer> {
  try {
    return await getRawBody(req, { limit: bytesMax, length: req.headers['content-length'] ?? null })
  } catch (error) {
    if ((error as { status?: number }).status === 413)
      throw new Refusal('payload_too_large', { headers: { Connection: 'close' } })
    throw new Refusal('invalid_request', { message: 'The request body is incomplete.' })
  }
}

const isBodyAbsent = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
