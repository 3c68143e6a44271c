/** Bodies of the site's requests: forms, and the bodies that are forwarded to the API. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { BodyTooLargeError, readBodyBytes } from '../platform/koa/request-body.ts'

/** The body is not a form in valid UTF-8. */
export class InvalidFormEncodingError extends Error {
  override name = 'InvalidFormEncodingError'
}

/**
 * Throws `BodyTooLargeError` and `IncompleteBodyError`. The rest of a body that is too large is discarded: closing the
 * connection instead would lose the reply.
 */
export async function readRequestBody(request: IncomingMessage): Promise<Buffer> {
  try {
    return await readBodyBytes(request)
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
