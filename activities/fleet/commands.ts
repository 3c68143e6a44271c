/** The commands of `npm run fleet`. */
import { connectPostgres, type Database } from '../../db/connection.ts'
import { beginEpoch } from '../../db/epochs.ts'
import { type RegionAction, recordRegionChange } from '../../db/transactions/change-region.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import type { Environment } from '../../platform/config/environment.ts'
import { type FleetCommand, parseFleetArguments, UsageError, usageExitCode } from '../../platform/fleet-arguments.ts'
import { createLog } from '../../platform/log.ts'
import { adoptInstances, formatAdoption, hasFailed, presentAdoption } from './adoption.ts'
import { checkRegions, formatCheck, presentCheck } from './check.ts'
import { exitCodeOf, reconcileFleet } from './reconciliation.ts'
import { formatReconciliation, presentReconciliation } from './reconciliation-report.ts'
import { createRelayProviders } from './relay-providers.ts'
import { formatStatus, presentStatus, readFleetStatus } from './status.ts'

export interface FleetResult {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

interface Result {
  readonly output: string
  readonly exitCode: number
}

/** Runs one command with the configuration of the worker. @param environment of this process by default. */
export async function runFleetCommand(words: readonly string[], environment?: Environment): Promise<FleetResult> {
  try {
    const { output, exitCode } = await run(parseFleetArguments(words), environment)
    return { stdout: output, stderr: '', code: exitCode }
  } catch (error) {
    return {
      stdout: '',
      stderr: `${(error as Error).message}\n`,
      code: error instanceof UsageError ? usageExitCode : 1,
    }
  }
}

// The output is the report; what the providers log is in the logs of the workers.
const log = createLog('fleet', 'silent')
const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

async function run(command: FleetCommand, environment?: Environment): Promise<Result> {
  if (command.name === 'help') return { output: command.text, exitCode: 0 }
  const config = readConfig(environment)
  const sql = connectPostgres(config.database.url, 5)
  try {
    switch (command.name) {
      case 'status': {
        const status = await readFleetStatus(sql, config)
        return { output: command.json ? json(presentStatus(status)) : formatStatus(status), exitCode: 0 }
      }
      case 'reconcile': {
        const providers = await createRelayProviders(config, log)
        // It may be the first sweep after a restore.
        if (!command.dryRun) await beginEpoch(sql, config.fleet.epoch)
        const result = await reconcileFleet({ config, sql, log, providers }, command)
        const output = command.json
          ? json(presentReconciliation(result, command))
          : formatReconciliation(result, command)
        return { output, exitCode: exitCodeOf(result) }
      }
      case 'check': {
        const regions = await checkRegions(config, sql, log)
        const output = command.json ? json(presentCheck(regions)) : formatCheck(regions)
        return { output, exitCode: regions.some(({ problem }) => problem !== null) ? 1 : 0 }
      }
      case 'adopt': {
        const { fleetName } = command
        const { fleet } = config
        if (fleet.name !== undefined && fleet.name !== fleetName)
          throw new UsageError(`SVC_FLEET_NAME is ${fleet.name}, so the name to adopt instances with is ${fleet.name}.`)
        const providers = await createRelayProviders({ ...config, fleet: { ...fleet, name: fleetName } }, log)
        const regions = await adoptInstances({ sql, providers }, command)
        const isConfigured = fleet.name === fleetName
        const output = command.json
          ? json(presentAdoption(regions, fleetName))
          : formatAdoption(regions, fleetName, isConfigured)
        return { output, exitCode: regions.some(hasFailed) ? 1 : 0 }
      }
      default:
        return { output: await changeRegion(config, sql, command.name, command.region), exitCode: 0 }
    }
  } finally {
    await sql.end({ timeout: 5 })
  }
}

async function changeRegion(config: Config, sql: Database, action: RegionAction, name: string): Promise<string> {
  const names = config.regions.map(({ region }) => region)
  if (!names.includes(name))
    throw new UsageError(`${name} is not a region. The regions of SVC_REGIONS are: ${names.join(', ')}.`)
  const { sessions, warmReady, warmBooting } = await recordRegionChange(sql, name, action)
  const warm = warmReady + warmBooting
  if (action === 'resume') {
    const wanted = config.regions.find(({ region }) => region === name)?.warm ?? 0
    return `${name} takes new sessions again. Warm instances to create: ${Math.max(0, wanted - warm)}; a worker does so within seconds.\n`
  }
  return `${name} takes no new sessions. Live sessions that run on: ${sessions}. Warm instances that are retired: ${warm}; a worker destroys them within seconds. To end the drain: npm run fleet -- resume ${name}\n`
}
