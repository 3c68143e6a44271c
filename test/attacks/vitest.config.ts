/** For `npm run test:attacks`: the service as its processes, attacked over the network. Two files run at a time, each with its own. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/attacks/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
})
