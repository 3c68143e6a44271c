/** A time limit for work that has none of its own. */

/** Rejects with this message after the time. The work itself goes on, and its result is ignored. */
export async function withTimeout<Value>(
  millis: number,
  message: string,
  work: () => Promise<Value> | Value,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), millis)
  })
  try {
    return await Promise.race([work(), timeout])
  } finally {
    clearTimeout(timer)
  }
}
