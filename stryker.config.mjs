/**
 * For `npm run test:mutation`: changes the rules in `domain/`, one place at a time, and counts the changes that make no test
 * fail. Fails below 90 percent.
 */
export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'test/domain/vitest.config.ts' },
  mutate: ['domain/**/*.ts'],
  // All that the tests read; the rest is not copied.
  ignorePatterns: ['**', '!domain/**', '!test/domain/**', '!platform/relay-engines.ts', '!db/schema.sql'],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  tempDirName: '.stryker',
  cleanTempDir: 'always',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 90 },
}
