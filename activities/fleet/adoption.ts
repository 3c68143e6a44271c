/** `npm run fleet -- adopt`: gives the instances without a name the name of this fleet. */
import pLimit from 'p-limit'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Database } from '../../db/connection.ts'
import { findKnownInstances } from '../../db/fleet/members.ts'
import { withTimeout } from '../../platform/timeout.ts'
import type { FleetMember, SharedAccount } from '../../providers/relay/provider.ts'
import type { RelayProviders } from './relay-providers.ts'

export interface RegionAdoption {
  readonly region: string
  readonly adopted: readonly string[]
  readonly failed: readonly { readonly instanceId: string; readonly error: string }[]
  /** Without a name, and unknown to this database. */
  readonly left: readonly string[]
  /** The region could not be listed. */
  readonly error: string | null
}

export interface AdoptOptions {
  readonly fleetName: string
  /** Also adopts instances that this database does not know. */
  readonly force: boolean
}

interface Deps {
  readonly sql: Database
  /** Of a configuration with the name. */
  readonly providers: RelayProviders
}

const listMillisMax = 45_000
const concurrentAdoptionsMax = 5

/** Instances that have a name keep it, so nothing of another fleet is taken. Safe to repeat. */
export async function adoptInstances({ sql, providers }: Deps, options: AdoptOptions): Promise<RegionAdoption[]> {
  const accounts = [...providers].flatMap(([region, { account }]) => (account ? [{ region, account }] : []))
  return Promise.all(accounts.map(({ region, account }) => adoptRegion(sql, region, account, options)))
}

async function adoptRegion(
  sql: Database,
  region: string,
  account: SharedAccount,
  { fleetName, force }: AdoptOptions,
): Promise<RegionAdoption> {
  try {
    const seen = await withTimeout(listMillisMax, 'the list took too long', () => account.listAll())
    const unnamed = seen.filter((one) => one.fleetName === null)
    const known = await findKnownInstances(sql, unnamed)
    const isWanted = ({ instanceId }: FleetMember) => force || known.has(instanceId)
    const limit = pLimit(concurrentAdoptionsMax)
    const results = await Promise.all(unnamed.filter(isWanted).map((one) => limit(tryToAdopt, account, one)))
    const adopted = results.flatMap(({ instanceId, error }) => (error === null ? [instanceId] : []))
    const failed = results.flatMap(({ instanceId, error }) => (error === null ? [] : [{ instanceId, error }]))
    const left = unnamed.filter((one) => !isWanted(one)).map(({ instanceId }) => instanceId)
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

export const hasFailed = ({ failed, left, error }: RegionAdoption): boolean =>
  error !== null || failed.length > 0 || left.length > 0

/** @param isConfigured whether SVC_FLEET_NAME is the name already. */
export function formatAdoption(regions: readonly RegionAdoption[], fleetName: string, isConfigured: boolean): string {
  if (regions.length === 0) return 'No region is in a cloud, so there is nothing to adopt.\n'
  const lines = regions.flatMap(({ region, adopted, failed, left, error }) => [
    error === null ? `${region}: ${adopted.length} adopted by ${fleetName}` : `${region}: failed: ${error}`,
    ...failed.map((one) => `${region}: ${one.instanceId} could not be adopted: ${one.error}`),
    ...(left.length > 0
      ? [
          `${region}: left alone, since this database does not know them: ${left.join(', ')}. If they belong to another control plane, give that one a name. If this database was restored, run this again with --force.`,
        ]
      : []),
  ])
  const next = isConfigured
    ? []
    : [
        `Now set SVC_FLEET_NAME=${fleetName} for the workers and restart all of them: workers without the name do not see these instances any more.`,
      ]
  return [...lines, ...next, ''].join('\n')
}

export const presentAdoption = (regions: readonly RegionAdoption[], fleetName: string): object => ({
  fleet: fleetName,
  regions: regions.map(({ region, adopted, failed, left, error }) => ({
    region,
    adopted,
    failed: failed.map((one) => ({ instance_id: one.instanceId, error: one.error })),
    left,
    error,
  })),
})
