/**
 * The deadlines of the service under test: short enough that each passes within a run, and long enough for a busy
 * machine.
 */
export const times = {
  provisionTimeoutSeconds: 25,
  healthIntervalSeconds: 1,
  healthTimeoutSeconds: 6,
  graceSeconds: 6,
  replacementSeconds: 20,
  stopGraceSeconds: 4,
  paymentGraceSeconds: 8,
  addonNoticeSeconds: 6,
} as const
