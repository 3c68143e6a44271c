/** Cleans up after the tests of a file. */
import { afterAll } from 'vitest'

const stops: (() => unknown)[] = []

/** Runs `stop` after the tests of the file, in reverse order of the calls. */
export const atEnd = (stop: () => unknown): void => void stops.push(stop)

/** Runs all of them, and then rejects with the first failure: the process continues with the next file. */
export async function runAtEnd(): Promise<void> {
  const failures: unknown[] = []
  for (const stop of stops.splice(0).reverse()) {
    try {
      await stop()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

// When the module loads, since Vitest ignores an `afterAll` call inside a `beforeAll`. That is before each file where
// files share no modules; where they do, `file-setup.ts` runs before each file.
afterAll(runAtEnd, 60_000)
