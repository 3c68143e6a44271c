/**
 * For `npm run test:system`: the whole service in a real browser. Three files run at a time, each with its own service
 * and browser.
 */
import { defineConfig } from 'vitest/config'
import { SlowFilesFirst } from '../support/slow-files-first.ts'

export default defineConfig({
  test: {
    include: ['test/system/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    sequence: { sequencer: SlowFilesFirst },
    pool: 'forks',
    maxWorkers: 3,
    // A limit of time ends a test that hangs. It is no measure: this machine may be busy or slow.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default'],
  },
})
