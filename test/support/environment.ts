/** The environment variables that a process of the control plane requires. */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { rateLimitDefaults } from '../../platform/config/values.ts'

const base64 = (bytes: number): string => randomBytes(bytes).toString('base64')

/** `SVC_RATE_LIMITS` with a million a minute for every limit that `limits` does not name. */
export const highLimits = (limits: Readonly<Record<string, number>> = {}): string =>
  Object.keys(rateLimitDefaults)
    .map((name) => `${name}=${limits[name] ?? 1_000_000}`)
    .join(',')

/**
 * Variables for `readConfig` or for a program: the Temporal server of the test run, a database that does not exist,
 * secrets that are new at each call, and no rate limits in the way.
 * @param overrides further variables, or other values.
 */
export const testEnvironment = (overrides: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  DATABASE_URL: 'postgres://127.0.0.1/none',
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  SVC_JWT_SECRET: base64(48),
  SVC_RELAY_AUTH_SECRET: base64(48),
  OAUTH_ENCRYPTION_KEY: base64(32),
  SVC_BILLING_WEBHOOK_SECRET: `whsec_${base64(32)}`,
  SVC_RATE_LIMITS: highLimits(),
  ...overrides,
})
