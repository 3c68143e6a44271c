/** Milliseconds since 1970. */
export type Millis = number
