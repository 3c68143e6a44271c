/** What a file's tests leave to be cleaned up. */
import { afterAll } from 'vitest'

const stops: (() => unknown)[] = []

// Registered while the file is read: an `afterAll` that is called from within a `beforeAll` is never heard of.
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
}, 60_000)

/** Runs `stop` after the tests of the file, in reverse order of the calls. */
export const atEnd = (stop: () => unknown): void => void stops.push(stop)
