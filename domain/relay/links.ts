/** How good a network path of an encoder is, as its owner reads it. */

export const linkVerdicts = ['good', 'weak', 'useless'] as const
export type LinkVerdict = (typeof linkVerdicts)[number]

/**
 * Why a link is not good. `slow`: its packets arrive later than those of the others. `lossy`: it loses packets.
 * `silent`: nothing arrives over it. `narrow`: it carries little.
 */
export const linkReasons = ['slow', 'lossy', 'silent', 'narrow'] as const
export type LinkReason = (typeof linkReasons)[number]
