/** Request bodies as bytes, with a size limit. */
import type { IncomingMessage } from 'node:http'
import getRawBody from 'raw-body'

/** The limit of bodies that are not read for a signature. */
export const bodyBytesMax = 64 * 1024

export class BodyTooLargeError extends Error {
  override name = 'BodyTooLargeError'
}

/** The client closed the connection before the end of the body, or sent less than it announced. */
export class IncompleteBodyError extends Error {
  override name = 'IncompleteBodyError'
}

/** Throws {@link BodyTooLargeError} as soon as the limit is exceeded, or {@link IncompleteBodyError}. */
export async function readBodyBytes(request: IncomingMessage, bytesMax = bodyBytesMax): Promise<Buffer> {
  try {
    return await getRawBody(request, { limit: bytesMax, length: request.headers['content-length'] ?? null })
  } catch (error) {
    if ((error as { status?: number }).status === 413) throw new BodyTooLargeError('the request body is too large')
    throw new IncompleteBodyError('the request body is incomplete')
  }
}
