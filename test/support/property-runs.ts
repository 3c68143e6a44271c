/** How many examples a property test tries. */

/**
 * @param few for `npm test`.
 * @param many for CI and for changes of what the property is about (`TEST_PROPERTY_RUNS=many`).
 */
export const propertyRuns = (few: number, many: number): number =>
  process.env.TEST_PROPERTY_RUNS === 'many' ? many : few
