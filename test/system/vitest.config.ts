/** For `npm run test:system`: the whole service in a real browser. Two files run at a time, each with its own service and browser. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/system/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
})
