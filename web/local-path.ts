/** Redirect targets that come with a request (`next`, `to`). */

const base = 'http://site.invalid'

const lengthMax = 2000

/** The path when it leads to a page of this site, or else `fallback`. Prevents open redirects. */
export function localPath(requested: string | null | undefined, fallback: string): string {
  if (!requested?.startsWith('/') || /[\\\p{Cc}]/u.test(requested)) return fallback
  if (!URL.canParse(requested, base)) return fallback
  const url = new URL(requested, base)
  const path = url.pathname + url.search
  // The parsed path can begin with `//`, which browsers read as another host.
  const isLocal = url.origin === base && !path.startsWith('//') && !path.startsWith('/api/')
  return isLocal && path.length <= lengthMax ? path : fallback
}
