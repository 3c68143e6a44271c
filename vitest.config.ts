import { defineConfig } from 'vitest/config'
import { SlowFilesFirst } from './test/support/slow-files-first.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // With a real browser: `npm run test:system`. Against separate processes: `npm run test:attacks`.
    exclude: ['test/system/**', 'test/attacks/**'],
    globalSetup: ['test/support/servers.ts'],
    setupFiles: ['test/support/file-setup.ts'],
    sequence: { sequencer: SlowFilesFirst },
    // Workers of the Temporal SDK hold native threads: a process each. Four at once, since most tests of workflows
    // wait.
    pool: 'forks',
    // A process runs many files, since loading the service again for each of them takes longer than most tests.
    isolate: false,
    maxWorkers: 4,
    // A limit of time ends a test that hangs. It is no measure: this machine may be busy or slow.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default'],
  },
})
