/** The job that checks the credentials of the relay providers again, since they may expire. */

import type { Job } from '../worker/jobs.ts'
import type { ProviderChecks } from './provider-checks.ts'

export const providerCheckJobs = (checks: ProviderChecks): readonly Job[] => [
  { name: 'check_providers', everySeconds: 600, runSecondsMax: 120, run: (signal) => checks.run(signal) },
]
