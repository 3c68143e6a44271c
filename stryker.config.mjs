/** The mutation check of `domain/`: see bench/mutation.ts. */
export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'test/domain/vitest.config.ts' },
  // All that the tests read; the rest is not copied.
  ignorePatterns: ['**', '!domain/**', '!test/domain/**', '!db/schema.sql'],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  tempDirName: '.stryker',
  cleanTempDir: 'always',
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: false },
  thresholds: { high: 95, low: 90, break: null },
}
