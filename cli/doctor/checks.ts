/** All checks of the doctor, and the connections that they share. */
import { type CheckResult, runChecks } from './check.ts'
import { clockChecks } from './clocks.ts'
import { configurationChecks } from './configuration.ts'
import { machineChecks } from './machine.ts'
import { openDatabase, postgresChecks } from './postgres.ts'
import { providerChecks } from './providers.ts'
import { secretChecks } from './secrets.ts'
import { serviceChecks } from './service.ts'
import type { Target } from './target.ts'
import { taskQueueChecks } from './task-queue.ts'
import { openTemporal, temporalChecks } from './temporal.ts'

/** Runs all checks that the configuration allows. Changes nothing. Never rejects because of a fault of the service. */
export async function examine(target: Target): Promise<CheckResult[]> {
  const database = openDatabase(target.databaseUrl)
  const temporal = openTemporal(target.temporal)
  try {
    return await runChecks([
      ...configurationChecks(target),
      ...secretChecks(target, database),
      ...postgresChecks(target, database),
      ...temporalChecks(target, temporal),
      ...taskQueueChecks(target, temporal),
      ...serviceChecks(target, database),
      ...clockChecks(target, database),
      ...(target.config ? providerChecks(target.config, database) : []),
      ...machineChecks(target),
    ])
  } finally {
    await Promise.all([database.sql?.end({ timeout: 1 }), temporal.close()])
  }
}
