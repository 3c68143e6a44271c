/** `svc fleet adopt`: gives the instances without a name the name of this fleet. */
import pLimit from 'p-limit'
import { createRelayProviders } from '../../activities/fleet/relay-providers.ts'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Database } from '../../db/connection.ts'
import { findKnownInstances } from '../../db/fleet/members.ts'
import { withTimeout } from '../../platform/timeout.ts'
import type { FleetMember, SharedAccount } from '../../providers/relay/provider.ts'
import { exitCodes, SvcError, usageError } from '../svc/exit-codes.ts'
import { printJson, printRemark, printTable } from '../svc/output.ts'
import { type OutputOptions, silentLog, type WorkerAccess, withWorkerAccess } from './worker-access.ts'

type RegionAdoption = Awaited<ReturnType<typeof adoptRegion>>

interface AdoptOptions {
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
async function adoptInstances({ config, sql }: WorkerAccess, options: AdoptOptions) {
  const { fleetName } = options
  const { fleet } = config
  if (fleet.name !== undefined && fleet.name !== fleetName)
    throw usageError(`SVC_FLEET_NAME is ${fleet.name}, so the name to adopt instances with is ${fleet.name}.`)
  const providers = await createRelayProviders({ ...config, fleet: { ...fleet, name: fleetName } }, silentLog)
  // Those in a cloud.
  const accounts = [...providers].flatMap(([region, { account }]) => (account ? [{ region, account }] : []))
  const regions = await Promise.all(accounts.map(({ region, account }) => adoptRegion(sql, region, account, options)))
  return { isConfigured: fleet.name === fleetName, regions }
}

async function adoptRegion(sql: Database, region: string, account: SharedAccount, { fleetName, force }: AdoptOptions) {
  const nothing: readonly string[] = []
  try {
    const seen = await withTimeout(listMillisMax, 'the list took too long', () => account.listAll())
    const unnamed = seen.filter((instance) => instance.fleetName === null)
    const known = await findKnownInstances(sql, unnamed)
    const isWanted = ({ instanceId }: FleetMember) => force || known.has(instanceId)
    const wanted = unnamed.filter(isWanted)
    const results = await pLimit(concurrentAdoptionsMax).map(wanted, (instance) => tryToAdopt(account, instance))
    const adopted = results.flatMap(({ instance_id, error }) => (error === null ? [instance_id] : []))
    const failed = results.flatMap(({ instance_id, error }) => (error === null ? [] : [{ instance_id, error }]))
    // Without a name, and unknown to this database.
    const left = unnamed.filter((instance) => !isWanted(instance)).map(({ instanceId }) => instanceId)
    if (adopted.length > 0)
      await recordAuditEntry(sql, {
        initiator: 'operator',
        action: 'instances_adopted',
        detail: { region, fleet: fleetName, instances: adopted.length, force },
      })
    return { region, adopted, failed, left, error: null }
  } catch (error) {
    return { region, adopted: nothing, failed: [], left: nothing, error: (error as Error).message }
  }
}

async function tryToAdopt(account: SharedAccount, member: FleetMember) {
  const { instanceId: instance_id } = member
  try {
    await account.adopt(member)
    return { instance_id, error: null }
  } catch (error) {
    return { instance_id, error: (error as Error).message }
  }
}

const rowsOf = ({ region, adopted, failed, left, error }: RegionAdoption) => [
  ...(error === null ? [] : [{ region, instance: null, outcome: `failed: ${error}` }]),
  ...adopted.map((instance) => ({ region, instance, outcome: 'adopted' })),
  ...failed.map((failure) => ({
    region,
    instance: failure.instance_id,
    outcome: `could not be adopted: ${failure.error}`,
  })),
  ...left.map((instance) => ({ region, instance, outcome: 'left alone, since this database does not know it' })),
]

/** Throws `SvcError` when an instance was not adopted. */
export async function adopt(options: AdoptOptions, { json }: OutputOptions): Promise<void> {
  const { isConfigured, regions } = await withWorkerAccess((access) => adoptInstances(access, options))
  const { fleetName } = options
  const count = (key: 'adopted' | 'failed' | 'left') => regions.reduce((sum, region) => sum + region[key].length, 0)
  if (json) printJson({ fleet: fleetName, regions })
  else if (regions.length === 0) printRemark('No region is in a cloud, so there is nothing to adopt.')
  else {
    printTable(
      [
        { header: 'REGION', value: ({ region }) => region },
        { header: 'INSTANCE', value: ({ instance }) => instance },
        { header: 'OUTCOME', value: ({ outcome }) => outcome },
      ],
      regions.flatMap(rowsOf),
    )
    printRemark(`Adopted by ${fleetName}: ${count('adopted')}.`)
    if (!isConfigured)
      printRemark(
        `Now set SVC_FLEET_NAME=${fleetName} for the workers and restart all of them: workers without the name do not see these instances any more.`,
      )
  }
  const unlisted = regions.filter(({ error }) => error !== null).map(({ region }) => region)
  const problems = [
    unlisted.length > 0 && `Not listed: ${unlisted.join(', ')}.`,
    count('failed') > 0 && `Could not be adopted: ${count('failed')}.`,
    count('left') > 0 &&
      `Left alone: ${count('left')}. If they belong to another control plane, give that one a name. If this database was restored, run this again with --force.`,
  ].filter((line) => line !== false)
  if (problems.length > 0) throw new SvcError(exitCodes.failed, problems.join('\n'))
}
