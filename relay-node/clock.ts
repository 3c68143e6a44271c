/** Milliseconds since 1970, by a clock that never goes back. */
export const now = (): number => performance.timeOrigin + performance.now()
