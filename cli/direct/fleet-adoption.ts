/** Gives the instances without a name the name of this fleet. */
import pLimit from 'p-limit'
import { createRelayProviders } from '../../activities/fleet/relay-providers.ts'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Database } from '../../db/connection.ts'
import { findKnownInstances } from '../../db/fleet/members.ts'
import { withTimeout } from '../../platform/timeout.ts'
import type { FleetMember, SharedAccount } from '../../providers/relay/provider.ts'
import { exitCodes, SvcError, usageError } from '../svc/exit-codes.ts'
import { type Column, printJson, printRemark, printTable } from '../svc/output.ts'
import { silentLog, type WorkerAccess } from './worker-access.ts'

export interface RegionAdoption {
  readonly region: string
  readonly adopted: readonly string[]
  readonly failed: readonly { readonly instanceId: string; readonly error: string }[]
  /** Without a name, and unknown to this database. */
  readonly left: readonly string[]
  /** The region could not be listed. */
  readonly error: string | null
}

export interface FleetAdoption {
  readonly fleetName: string
  /** Whether SVC_FLEET_NAME is the name already. */
  readonly isConfigured: boolean
  /** Those in a cloud. */
  readonly regions: readonly RegionAdoption[]
}

export interface AdoptOptions {
  readonly fleetName: string
  /** Also adopts instances that this database does not know. */
  readonly force: boolean
}

const listMillisMax = 45_000
const concurrentAdoptionsMax = 5

/**
 * Instances that have a name keep it, so nothing of another fleet is taken. Safe to repeat.
 * Throws `SvcError` when the configured name is another one.
 */
export async function adoptInstances({ config, sql }: WorkerAccess, options: AdoptOptions): Promise<FleetAdoption> {
  const { fleetName } = options
  const { fleet } = config
  if (fleet.name !== undefined && fleet.name !== fleetName)
    throw usageError(`SVC_FLEET_NAME is ${fleet.name}, so the name to adopt instances with is ${fleet.name}.`)
  const providers = await createRelayProviders({ ...config, fleet: { ...fleet, name: fleetName } }, silentLog)
  const accounts = [...providers].flatMap(([region, { account }]) => (account ? [{ region, account }] : []))
  const regions = await Promise.all(accounts.map(({ region, account }) => adoptRegion(sql, region, account, options)))
  return { fleetName, isConfigured: fleet.name === fleetName, regions }
}

async function adoptRegion(
  sql: Database,
  region: string,
  account: SharedAccount,
  { fleetName, force }: AdoptOptions,
): Promise<RegionAdoption> {
  try {
    const seen = await withTimeout(listMillisMax, 'the list took too long', () => account.listAll())
    const unnamed = seen.filter((instance) => instance.fleetName === null)
    const known = await findKnownInstances(sql, unnamed)
    const isWanted = ({ instanceId }: FleetMember) => force || known.has(instanceId)
    const limit = pLimit(concurrentAdoptionsMax)
    const results = await Promise.all(unnamed.filter(isWanted).map((instance) => limit(tryToAdopt, account, instance)))
    const adopted = results.flatMap(({ instanceId, error }) => (error === null ? [instanceId] : []))
    const failed = results.flatMap(({ instanceId, error }) => (error === null ? [] : [{ instanceId, error }]))
    const left = unnamed.filter((instance) => !isWanted(instance)).map(({ instanceId }) => instanceId)
    if (adopted.length > 0)
      await recordAuditEntry(sql, {
        initiator: 'operator',
        action: 'instances_adopted',
        detail: { region, fleet: fleetName, instances: adopted.length, force },
      })
    return { region, adopted, failed, left, error: null }
  } catch (error) {
    return { region, adopted: [], failed: [], left: [], error: (error as Error).message }
  }
}

async function tryToAdopt(account: SharedAccount, member: FleetMember) {
  const { instanceId } = member
  try {
    await account.adopt(member)
    return { instanceId, error: null }
  } catch (error) {
    return { instanceId, error: (error as Error).message }
  }
}

interface InstanceRow {
  readonly region: string
  readonly instanceId: string | null
  readonly outcome: string
}

const columns: readonly Column<InstanceRow>[] = [
  { header: 'REGION', value: ({ region }) => region },
  { header: 'INSTANCE', value: ({ instanceId }) => instanceId },
  { header: 'OUTCOME', value: ({ outcome }) => outcome },
]

const rowsOf = ({ region, adopted, failed, left, error }: RegionAdoption): InstanceRow[] => [
  ...(error === null ? [] : [{ region, instanceId: null, outcome: `failed: ${error}` }]),
  ...adopted.map((instanceId) => ({ region, instanceId, outcome: 'adopted' })),
  ...failed.map((failure) => ({
    region,
    instanceId: failure.instanceId,
    outcome: `could not be adopted: ${failure.error}`,
  })),
  ...left.map((instanceId) => ({ region, instanceId, outcome: 'left alone, since this database does not know it' })),
]

/** Throws `SvcError` when an instance was not adopted. */
export function printAdoption(adoption: FleetAdoption, { json }: { readonly json?: true }): void {
  const { fleetName, isConfigured, regions } = adoption
  const count = (key: 'adopted' | 'failed' | 'left') => regions.reduce((sum, region) => sum + region[key].length, 0)
  if (json) printJson(presentAdoption(adoption))
  else if (regions.length === 0) printRemark('No region is in a cloud, so there is nothing to adopt.')
  else {
    printTable(columns, regions.flatMap(rowsOf))
    printRemark(`Adopted by ${fleetName}: ${count('adopted')}.`)
    if (!isConfigured)
      printRemark(
        `Now set SVC_FLEET_NAME=${fleetName} for the workers and restart all of them: workers without the name do not see these instances any more.`,
      )
  }
  const unlisted = regions.filter(({ error }) => error !== null).map(({ region }) => region)
  const problems = [
    ...(unlisted.length > 0 ? [`Not listed: ${unlisted.join(', ')}.`] : []),
    ...(count('failed') > 0 ? [`Could not be adopted: ${count('failed')}.`] : []),
    ...(count('left') > 0
      ? [
          `Left alone: ${count('left')}. If they belong to another control plane, give that one a name. If this database was restored, run this again with --force.`,
        ]
      : []),
  ]
  if (problems.length > 0) throw new SvcError(exitCodes.failed, problems.join('\n'))
}

const presentAdoption = ({ fleetName, regions }: FleetAdoption): object => ({
  fleet: fleetName,
  regions: regions.map(({ region, adopted, failed, left, error }) => ({
    region,
    adopted,
    failed: failed.map((failure) => ({ instance_id: failure.instanceId, error: failure.error })),
    left,
    error,
  })),
})
