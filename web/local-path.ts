/** Where a page sends a browser next, when the address that says so came with the request. */

const base = 'http://site.invalid'

const lengthMax = 2000

/** The path if it leads to a page of this site and nowhere else, or `otherwise`: a link of ours is no way to another site. */
export function localPath(wanted: string | null | undefined, otherwise: string): string {
  if (!wanted?.startsWith('/') || /[\\\p{Cc}]/u.test(wanted)) return otherwise
  if (!URL.canParse(wanted, base)) return otherwise
  const url = new URL(wanted, base)
  const path = url.pathname + url.search
  // `//elsewhere` is another host; what the parser makes of the rest is what a browser will.
  const isHere = url.origin === base && !path.startsWith('//') && !path.startsWith('/api/')
  return isHere && path.length <= lengthMax ? path : otherwise
}
