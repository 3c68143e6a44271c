/** What an uploaded slate may have. */
export const slateBytesMax = 4 * 1024 * 1024
/** Pixels of its width and of its height. */
export const slateSideMax = 4096
