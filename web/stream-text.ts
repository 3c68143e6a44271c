/** Bitrates and amounts of data as text. */

/** `5.2 Mbps`, and below one `640 kbps`. */
export const formatBitrate = (kbps: number): string =>
  kbps < 1000 ? `${Math.round(kbps)} kbps` : `${(kbps / 1000).toFixed(1)} Mbps`

/** `1 link`, `3 links`. SRT without SRTLA has none. `relays.js` formats it in the same way. */
export const formatLinks = (links: number): string => (links === 1 ? '1 link' : `${links} links`)

interface LinkFigures {
  readonly links: number
  readonly usual_links?: number | undefined
}

/**
 * `over 3 links`, and while one is gone `over 2 of 3 links`. Empty without SRTLA. `relays.js` formats it in the same
 * way.
 */
export function formatLinksOf(ingest: LinkFigures | null | undefined): string {
  const { links = 0, usual_links: usual = 0 } = ingest ?? {}
  if (links === 0) return ''
  return usual > links ? `over ${links} of ${usual} links` : `over ${formatLinks(links)}`
}

/** Below it repeats are no reason to do anything. */
const repeatPctMin = 5

/**
 * `, 7 of 100 packets repeated`; empty for few.
 * @param repeatPct in percent; undefined where it is not known. `relays.js` formats it in the same way.
 */
export const formatRepeats = (repeatPct = 0): string =>
  repeatPct > repeatPctMin ? `, ${Math.round(repeatPct)} of 100 packets repeated` : ''

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
