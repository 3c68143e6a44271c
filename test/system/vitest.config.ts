/** For `npm run test:system`: the whole service, visited with a real browser. Two files at once: each has a service and a browser of its own. */
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
