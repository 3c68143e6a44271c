/** Comparison of secrets. */
import { hash, timingSafeEqual } from 'node:crypto'

/** Takes the same time wherever the two differ. Their digests have equal lengths, as `timingSafeEqual` requires. */
export const areEqualSecrets = (one: string | Uint8Array, other: string | Uint8Array): boolean =>
  timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
