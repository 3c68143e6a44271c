/** What a request brings, within a bound. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

export const bodyBytesMax = 64 * 1024

export class BodyTooLargeError extends Error {
  override name = 'BodyTooLargeError'
}

/** The body is no form whose fields are UTF-8. */
export class InvalidFormEncodingError extends Error {
  override name = 'InvalidFormEncodingError'
}

/** Whoever sent it is gone before its end. */
export class RequestAbortedError extends Error {
  override name = 'RequestAbortedError'
}

/**
 * Rejects with {@link BodyTooLargeError} as soon as it is, and with {@link RequestAbortedError}. The rest of one that is too large is
 * thrown away as it comes: a connection that is closed instead loses the answer too.
 */
export const readRequestBody = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const brokenOff = () => reject(new RequestAbortedError('the request ended before its body'))
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= bodyBytesMax) chunks.push(chunk)
      else reject(new BodyTooLargeError('the request body is too large'))
    })
    request.once('end', () => resolve(Buffer.concat(chunks)))
    request.once('error', brokenOff)
    request.once('close', brokenOff)
  })

/**
 * The fields of a posted form. Throws {@link InvalidFormEncodingError} where `URLSearchParams` would put the replacement character in
 * the place of invalid bytes, so that a field would be stored that differs from the one that was sent.
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
