/** Repeats a look-up until its result is there. */
import { setTimeout as sleep } from 'node:timers/promises'

interface Polling {
  readonly millisMax: number
  /** The first pause. Later ones are longer, since each look-up counts towards the rate limit of the project. */
  readonly pauseMillis: number
  readonly signal?: AbortSignal
}

const pauseGrowth = 1.5
const pauseGrowthMax = 5

/** @returns undefined when `millisMax` is over. When `signal` is aborted, it rejects. */
export async function pollUntil<Value>(
  lookUp: () => Promise<Value | undefined>,
  { millisMax, pauseMillis, signal }: Polling,
): Promise<Value | undefined> {
  const until = performance.now() + millisMax
  for (let pause = pauseMillis; ; pause = Math.min(pause * pauseGrowth, pauseMillis * pauseGrowthMax)) {
    const found = await lookUp()
    if (found !== undefined || performance.now() + pause > until) return found
    await sleep(pause, undefined, { signal })
  }
}
