/** All checks of the doctor, and the connections that they share. */
import { type CheckResult, runChecks } from './check.ts'
import { checkClocks } from './clocks.ts'
import { checkConfiguration, checkStack } from './configuration.ts'
import { checkLegalPages } from './legal.ts'
import { checkDisk, checkVideoEngine } from './machine.ts'
import { openDatabase, postgresChecks } from './postgres.ts'
import { providerChecks } from './providers.ts'
import { secretChecks } from './secrets.ts'
import { serviceChecks } from './service.ts'
import type { Target } from './target.ts'
import { checkTaskQueue } from './task-queue.ts'
import { checkTemporal, openTemporal } from './temporal.ts'

/** Runs all checks that the configuration allows. Changes nothing. Never rejects because of a fault of the service. */
export async function examine(target: Target): Promise<CheckResult[]> {
  const { config, running } = target
  const database = openDatabase(target.databaseUrl)
  const temporal = openTemporal(target.temporal)
  try {
    return await runChecks([
      { name: 'configuration', run: () => checkConfiguration(target) },
      ...(running ? [{ name: 'stack', run: () => checkStack(target.stack, running) }] : []),
      ...(config ? [{ name: 'legal', run: () => checkLegalPages(config) }] : []),
      ...secretChecks(target, database),
      ...postgresChecks(target, database),
      { name: 'temporal', run: () => checkTemporal(target, temporal) },
      { name: 'task-queue', run: () => checkTaskQueue(target, temporal) },
      ...serviceChecks(target, database),
      { name: 'clocks', run: () => checkClocks(target, database) },
      ...(config ? providerChecks(config, database) : []),
      { name: 'disk', run: () => checkDisk(target) },
      ...(config ? [{ name: 'video-engine', run: () => checkVideoEngine(config) }] : []),
    ])
  } finally {
    await Promise.all([database.sql?.end({ timeout: 1 }), temporal.close()])
  }
}
