/** Connections: the names that an account starts relays for. */

/** The most connections of an account. */
export const connectionsMax = 50
