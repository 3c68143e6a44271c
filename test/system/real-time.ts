/** Tests that judge real time, such as video or a flood of datagrams. */
import { test } from 'vitest'

/**
 * A stall of the machine in the wrong second looks like a fault of the product, so such a test is tried once more. CI
 * prints it, and allows one a run (docs/decisions/0054).
 */
export const testInRealTime = (name: string, run: () => Promise<void>): void => test(name, { retry: 1 }, run)
