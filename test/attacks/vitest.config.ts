/**
 * For `npm run test:attacks`: the service as its processes, attacked over the network. Two files run at a time, each
 * with its own.
 */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/attacks/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // A limit of time ends a test that hangs. It is no measure: this machine may be busy or slow.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default'],
  },
})
