/** Keys that admit players only. */

/**
 * - `own`: made by the owner of the account
 * - `connection`: of the addresses that the service shows for a connection
 * - `app`: of the addresses that a connected app gets
 */
export const playKeyKinds = ['own', 'connection', 'app'] as const
export type PlayKeyKind = (typeof playKeyKinds)[number]

/** How many keys of the kind `own` an account may have. */
export const ownPlayKeysMax = 20

/** The longest name, in characters. */
export const playKeyNameLengthMax = 64
