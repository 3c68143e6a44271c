/** What the players of a connection see while no stream arrives. */

/**
 * - `hold`: nothing is sent.
 * - `freeze`: the last picture again, with silence.
 * - `slate`: a picture of the user or the built-in one, with silence.
 */
export const onLossModes = ['hold', 'freeze', 'slate'] as const
export type OnLoss = (typeof onLossModes)[number]

/** Of new connections. Those that were made before the modes existed keep `hold`. */
export const onLossDefault: OnLoss = 'freeze'

/** The id of an image: SHA-256 of its bytes in hexadecimal digits. */
export const isSlateDigest = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

/**
 * The image that a relay may need; null for none. With `freeze` a relay that has had no picture of the publisher, as a
 * replacement, shows the built-in one.
 * @param own the image of the connection.
 */
export function chooseSlate(mode: OnLoss, own: string | null, builtIn: string): string | null {
  if (mode === 'hold') return null
  return mode === 'slate' ? (own ?? builtIn) : builtIn
}
