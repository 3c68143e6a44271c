/** One answer for many who ask, kept for a while. */

/**
 * Asks once and keeps what came for `millis`. Those who ask meanwhile share the one question; a failure is theirs alone,
 * and the next one asks anew.
 * @param now milliseconds since 1970.
 */
export function kept<Answer>(millis: number, ask: () => Promise<Answer>, now: () => number = Date.now) {
  let current: { readonly answer: Promise<Answer>; readonly until: number } | undefined

  return (): Promise<Answer> => {
    if (current && now() < current.until) return current.answer
    const asked = { answer: ask(), until: now() + millis }
    current = asked
    asked.answer.catch(() => {
      if (current === asked) current = undefined
    })
    return asked.answer
  }
}
