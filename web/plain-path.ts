/** Paths of the api that every server on the way reads alike. */

/** No dots that lead elsewhere, no empty part, nothing encoded: all that the api's own paths are made of. */
export const isPlainPath = (path: string): boolean => /^(\/[\w~-][\w.~-]*)+$/.test(path)
