/**
 * Returns a function that calls `load` once per `ttlMillis`, measured from the start of the call. Concurrent callers
 * share one call, even one that takes longer than that. A failure is not cached.
 * @param now milliseconds since 1970.
 */
export function memoizeWithTtl<Value>(ttlMillis: number, load: () => Promise<Value>, now: () => number = Date.now) {
  let cached: { readonly value: Promise<Value>; readonly expiresAt: number } | undefined
  let isLoading = false

  return (): Promise<Value> => {
    if (cached && (isLoading || now() < cached.expiresAt)) return cached.value
    isLoading = true
    cached = { expiresAt: now() + ttlMillis, value: load() }
    cached.value.then(
      () => {
        isLoading = false
      },
      () => {
        isLoading = false
        cached = undefined
      },
    )
    return cached.value
  }
}
