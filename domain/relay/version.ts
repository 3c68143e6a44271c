/** The version of the program in `relay-node/`: of its bundle, and of the image of a region that names no other. */
export const relayVersion = '0.9.0'
export const relayReleasedAt = '2026-11-28T12:00:00Z'
