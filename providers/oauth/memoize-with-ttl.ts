/**
 * Returns a function that calls `load` once per `ttlMillis`, measured from the start of the call. Concurrent callers share
 * one call. A failure is not cached.
 * @param now milliseconds since 1970.
 */
export function memoizeWithTtl<Value>(ttlMillis: number, load: () => Promise<Value>, now: () => number = Date.now) {
  let cached: { readonly value: Promise<Value>; readonly expiresAt: number } | undefined

  return (): Promise<Value> => {
    if (cached && now() < cached.expiresAt) return cached.value
    const loading = { value: load(), expiresAt: now() + ttlMillis }
    cached = loading
    loading.value.catch(() => {
      if (cached === loading) cached = undefined
    })
    return loading.value
  }
}
