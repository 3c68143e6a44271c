/**
 * Whether a path consists of plain segments as the API's own paths do: no dot segments, empty segments or encoded
 * characters, which a proxy and the API could interpret differently.
 */
export const isPlainPath = (path: string): boolean => /^(\/[\w~-][\w.~-]*)+$/.test(path)

/** Whether a value can be a segment of a plain path as it is. */
export const isPlainSegment = (value: string): boolean => !value.includes('/') && isPlainPath(`/${value}`)
