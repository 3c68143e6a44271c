/**
 * Request bodies: JSON in UTF-8 for most routes, raw bytes for routes that verify a signature. Both have a size limit.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { RouterContext } from '@koa/router'
import { koaBody } from 'koa-body'
import { BodyTooLargeError, bodyBytesMax, readBodyBytes } from '../../platform/koa/request-body.ts'
import { Refusal, refusals } from './refusals.ts'
import type { RawBody } from './served-route.ts'

/** The empty encoding returns bytes; a decoder would replace invalid bytes without an error. */
const parseDecompressed = koaBody({
  json: false,
  urlencoded: false,
  multipart: false,
  text: true,
  textTypes: ['json'],
  textLimit: String(bodyBytesMax),
  encoding: '',
})

/** RFC 8259, section 8.1, requires UTF-8. ASCII is a subset. */
const charsets = new Set(['', 'utf-8', 'utf8', 'us-ascii'])

/**
 * Parses the body. A missing body becomes an empty object, which routes without required fields accept. Refuses with
 * `unsupported_media_type`, `payload_too_large` and `invalid_request`.
 */
export async function readJson(ctx: RouterContext): Promise<unknown> {
  if (isBodyAbsent(ctx.req)) return {}
  if (!isJsonType(ctx)) throw new Refusal('unsupported_media_type')
  const bytes = isCompressed(ctx.req) ? await readDecompressed(ctx) : await readBytes(ctx.req, bodyBytesMax)
  if (bytes.length === 0) return {}
  if (!isUtf8(bytes)) throw new Refusal('invalid_request', { message: 'The request body is not valid UTF-8.' })
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Refusal('invalid_request', { message: 'The request body is not valid JSON.' })
  }
}

/**
 * Refuses with `unsupported_media_type` unless the content type is JSON, also for an empty body: forms on other sites
 * can send other content types without a CORS preflight request.
 */
export function requireJson(ctx: RouterContext): void {
  if (ctx.request.type.toLowerCase() !== 'application/json') throw new Refusal('unsupported_media_type')
}

/** The comparison comes first because parsing the media type costs more than reading a short body. */
const isJsonType = (ctx: RouterContext): boolean =>
  ctx.req.headers['content-type'] === 'application/json' ||
  (Boolean(ctx.is('json')) && charsets.has(ctx.request.charset.toLowerCase()))

const isCompressed = ({ headers }: IncomingMessage): boolean =>
  (headers['content-encoding'] ?? 'identity') !== 'identity'

async function readDecompressed(ctx: RouterContext): Promise<Buffer> {
  try {
    await parseDecompressed(ctx as never, async () => {})
  } catch (error) {
    const status = (error as { status?: number }).status
    if (status === 413) throw new Refusal('payload_too_large', { headers: { Connection: 'close' } })
    if (status === 415) throw new Refusal('unsupported_media_type')
    throw new Refusal('invalid_request', {
      message: 'The request body is incomplete or does not match its Content-Encoding header.',
    })
  }
  return (ctx.request.body as unknown as Buffer | undefined) ?? Buffer.alloc(0)
}

/**
 * The body exactly as it was sent. Refuses with `invalid_request`, and with `tooLarge` or `payload_too_large`.
 */
export async function readBytes(
  req: IncomingMessage,
  bytesMax: number,
  tooLarge: RawBody['tooLarge'] = { code: 'payload_too_large', message: refusals.payload_too_large[1] },
): Promise<Buffer> {
  try {
    return await readBodyBytes(req, bytesMax)
  } catch (error) {
    if (error instanceof BodyTooLargeError)
      throw new Refusal(tooLarge.code, { message: tooLarge.message, headers: { Connection: 'close' } })
    throw new Refusal('invalid_request', { message: 'The request body is incomplete.' })
  }
}

const isBodyAbsent = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
