/** What a request brings, within a bound. */
import type { IncomingMessage } from 'node:http'

export const bodyBytesMax = 64 * 1024

export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge'
}

/** Throws {@link BodyTooLarge} as soon as it is. */
export async function readRequestBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > bodyBytesMax) throw new BodyTooLarge('the request body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
