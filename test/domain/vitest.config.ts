/** For `npm run test:mutation`: the tests of the rules that need no servers. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/domain/**/*.test.ts'],
    exclude: ['test/domain/relay/legal-transitions.test.ts'],
    setupFiles: ['test/domain/fixed-seed.ts'],
    pool: 'threads',
  },
})
