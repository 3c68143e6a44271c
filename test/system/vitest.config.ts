/** For `npm run test:system`: the whole service, visited with a real browser. One file after the other, since it is one machine. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/system/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
})
