/** Waiting for a value. Without Vitest, since `npm run screenshots` uses it too. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Repeats until the value satisfies the predicate. Rejects with the last value after `secondsMax`. */
export async function eventually<Value>(
  ask: () => Promise<Value> | Value,
  isWanted: (value: Value) => boolean,
  secondsMax = 90,
): Promise<Value> {
  const until = Date.now() + secondsMax * 1000
  for (;;) {
    const value = await ask()
    if (isWanted(value)) return value
    if (Date.now() > until)
      throw new Error(`the expected value did not appear within ${secondsMax} s: ${JSON.stringify(value)}`)
    await sleep(50)
  }
}
