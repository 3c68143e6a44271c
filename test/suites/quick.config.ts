/** For `npm run test:quick`: everything that starts no process and needs no server, in less than a minute. */
import { defineConfig } from 'vitest/config'
import { listQuickFiles } from './quick-files.ts'

export default defineConfig({
  test: {
    include: listQuickFiles(),
    setupFiles: ['test/support/file-setup.ts'],
    pool: 'threads',
    isolate: false,
    testTimeout: 60_000,
    reporters: ['default'],
  },
})
