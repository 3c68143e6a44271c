/** Where a page sends a browser next, when the address that says so came with the request. */

const base = 'http://site.invalid'

/** The path if it leads to a page of this site and nowhere else, or `otherwise`: a link of ours is no way to another site. */
export function localPath(wanted: string | null | undefined, otherwise: string): string {
  if (!wanted?.startsWith('/') || wanted.length > 2000 || /[\\\p{Cc}]/u.test(wanted)) return otherwise
  try {
    const url = new URL(wanted, base)
    // `//elsewhere` is another host; what the parser makes of the rest is what a browser will.
    return url.origin === base && !url.pathname.startsWith('//') && !url.pathname.startsWith('/api/')
      ? url.pathname + url.search
      : otherwise
  } catch {
    return otherwise
  }
}
