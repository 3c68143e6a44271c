/** Request bodies, with a size limit. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

export const bodyBytesMax = 64 * 1024

export class BodyTooLargeError extends Error {
  override name = 'BodyTooLargeError'
}

/** The body is not a form in valid UTF-8. */
export class InvalidFormEncodingError extends Error {
  override name = 'InvalidFormEncodingError'
}

/** The client closed the connection before the end of the body. */
export class RequestAbortedError extends Error {
  override name = 'RequestAbortedError'
}

/**
 * Rejects with {@link BodyTooLargeError} as soon as the limit is exceeded, and with {@link RequestAbortedError}. Discards the
 * rest of a body that is too large: closing the connection instead would lose the reply.
 */
export const readRequestBody = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const abort = () => reject(new RequestAbortedError('the request ended before its body'))
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= bodyBytesMax) chunks.push(chunk)
      else reject(new BodyTooLargeError('the request body is too large'))
    })
    request.once('end', () => resolve(Buffer.concat(chunks)))
    request.once('error', abort)
    request.once('close', abort)
  })

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
