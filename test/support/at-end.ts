/** Cleans up after the tests of a file. */
import { afterAll } from 'vitest'

const stops: (() => unknown)[] = []

// Registered when the module loads, since Vitest ignores an `afterAll` call inside a `beforeAll`.
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
}, 60_000)

/** Runs `stop` after the tests of the file, in reverse order of the calls. */
export const atEnd = (stop: () => unknown): void => void stops.push(stop)
