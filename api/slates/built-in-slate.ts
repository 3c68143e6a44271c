/** The image that is sent for connections without one of their own. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { SlateImage } from '../../db/relay/slates.ts'

let read: SlateImage | undefined

/** Read once. 1920 × 1080. */
export function builtInSlate(): SlateImage {
  if (read) return read
  const image = readFileSync(new URL('./built-in.jpg', import.meta.url))
  read = { digest: createHash('sha256').update(image).digest('hex'), image }
  return read
}
