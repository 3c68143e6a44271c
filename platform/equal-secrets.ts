/** Comparison of secrets. */
import { hash, timingSafeEqual } from 'node:crypto'

/** Takes the same time wherever the two differ. Their digests have equal lengths, as `timingSafeEqual` requires. */
export const areEqualSecrets = (a: string | Uint8Array, b: string | Uint8Array): boolean =>
  timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'))
