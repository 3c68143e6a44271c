/** Bitrates and amounts of data as text. */

/** `5.2 Mbps`, and below one `640 kbps`. */
export const formatBitrate = (kbps: number): string =>
  kbps < 1000 ? `${Math.round(kbps)} kbps` : `${(kbps / 1000).toFixed(1)} Mbps`

/** `1 link`, `3 links`. SRT without SRTLA has none. `relays.js` formats it in the same way. */
export const formatLinks = (links: number): string => (links === 1 ? '1 link' : `${links} links`)

const units = [
  ['TB', 1e12],
  ['GB', 1e9],
  ['MB', 1e6],
  ['kB', 1e3],
] as const

/** `3.4 GB`. */
export function formatBytes(bytes: number): string {
  const unit = units.find(([, size]) => bytes >= size)
  return unit ? `${(bytes / unit[1]).toFixed(1)} ${unit[0]}` : `${bytes} bytes`
}
