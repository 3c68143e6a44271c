/** Bodies of the site's requests: forms, and the bodies that are forwarded to the API. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { BodyTooLargeError, bodyBytesMax, readBodyBytes } from '../platform/koa/request-body.ts'

/** The body is not a form in valid UTF-8. */
export class InvalidFormEncodingError extends Error {
  override name = 'InvalidFormEncodingError'
}

/**
 * Throws `BodyTooLargeError` and `IncompleteBodyError`. The rest of a body that is too large is discarded: closing the
 * connection instead would lose the reply.
 */
export async function readRequestBody(request: IncomingMessage, bytesMax = bodyBytesMax): Promise<Buffer> {
  try {
    return await readBodyBytes(request, bytesMax)
  } catch (error) {
    if (error instanceof BodyTooLargeError) request.resume()
    throw error
  }
}

/**
 * The fields of a posted form. Throws {@link InvalidFormEncodingError} on invalid UTF-8, which `URLSearchParams` would
 * replace silently, so that a different value would be stored.
 */
export function parseForm(body: Buffer): URLSearchParams {
  const text = body.toString('utf8')
  if (!isUtf8(body) || !isPercentEncodedUtf8(text)) throw new InvalidFormEncodingError('the form is not UTF-8')
  return new URLSearchParams(text)
}

function isPercentEncodedUtf8(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/**
 * The fields and the files of a posted form. Throws as {@link readRequestBody} does, and
 * {@link InvalidFormEncodingError} for a body that is no form.
 */
export async function readFormWithFiles(request: IncomingMessage, bytesMax: number): Promise<FormData> {
  const body = await readRequestBody(request, bytesMax)
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  try {
    return await new Response(new Uint8Array(body), { headers }).formData()
  } catch (error) {
    throw new InvalidFormEncodingError('the body is not a form', { cause: error })
  }
}
