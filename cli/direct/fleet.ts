/** `svc fleet`: runs a command with the configuration of the worker, and prints its result. */
import { type AdoptOptions, adoptInstances, printAdoption } from './fleet-adoption.ts'
import { checkRegions, printChecks } from './fleet-check.ts'
import { type ComparisonOptions, compareFleet } from './fleet-comparison.ts'
import { printComparison } from './fleet-comparison-report.ts'
import { printStatus, readFleetStatus } from './fleet-status.ts'
import { withWorkerAccess } from './worker-access.ts'

interface Output {
  readonly json?: true
}

export const showStatus = async (output: Output): Promise<void> =>
  printStatus(await withWorkerAccess(readFleetStatus), output)

export const check = async (output: Output): Promise<void> => printChecks(await withWorkerAccess(checkRegions), output)

export const compare = async (options: ComparisonOptions, output: Output): Promise<void> =>
  printComparison(await withWorkerAccess((access) => compareFleet(access, options)), options, output)

export const adopt = async (options: AdoptOptions, output: Output): Promise<void> =>
  printAdoption(await withWorkerAccess((access) => adoptInstances(access, options)), output)
