/** The regions as Postgres has them, without a call to a provider. */
import { countInstancesElsewhere } from '../../db/fleet/instance-comparison.ts'
import { countOrphans } from '../../db/fleet/orphans.ts'
import { listRegionRows } from '../../db/fleet/regions.ts'
import { listProviderChecks, type ProviderCheck } from '../../db/operations/provider-checks.ts'
import { imageKey } from '../../platform/config/regions.ts'
import { type Column, formatTime, printJson, printRemark, printTable } from '../svc/output.ts'
import type { WorkerAccess } from './worker-access.ts'

export interface RegionStatus {
  readonly region: string
  readonly provider: string
  readonly capacity: number
  readonly sessions: number
  readonly bound: number
  readonly warmReady: number
  readonly warmBooting: number
  readonly warmWanted: number
  readonly leftover: number
  readonly orphans: number
  readonly drainedAt: Date | null
  readonly image: string
  /** The last one; null before the first. */
  readonly check: ProviderCheck | null
}

export interface FleetStatus {
  readonly regions: readonly RegionStatus[]
  /** Existing instances in regions that are not in SVC_REGIONS. */
  readonly elsewhere: readonly { readonly region: string; readonly count: number }[]
}

export async function readFleetStatus({ config: { regions }, sql }: WorkerAccess): Promise<FleetStatus> {
  const names = regions.map(({ region }) => region)
  const [rows, orphans, checks, elsewhere] = await Promise.all([
    listRegionRows(sql, names),
    countOrphans(sql),
    listProviderChecks(sql),
    countInstancesElsewhere(sql, names),
  ])
  return {
    elsewhere,
    regions: rows.flatMap((row) => {
      const config = regions.find(({ region }) => region === row.region)
      if (!config) return []
      const { region, provider, capacity } = config
      const { sessions, bound, warmReady, warmBooting, leftover, drainedAt, isDrained } = row
      return {
        ...{ region, provider, capacity, sessions, bound, warmReady, warmBooting, leftover, drainedAt },
        warmWanted: isDrained ? 0 : config.warm,
        orphans: orphans.find((one) => one.region === region)?.orphans ?? 0,
        image: imageKey(config),
        check: checks.find((one) => one.region === region) ?? null,
      }
    }),
  }
}

const columns: readonly Column<RegionStatus>[] = [
  { header: 'REGION', value: (one) => one.region },
  { header: 'PROVIDER', value: (one) => one.provider },
  { header: 'CAPACITY', value: (one) => one.capacity },
  { header: 'SESSIONS', value: (one) => one.sessions },
  { header: 'BOUND', value: (one) => one.bound },
  { header: 'WARM READY/BOOTING/WANTED', value: (one) => `${one.warmReady}/${one.warmBooting}/${one.warmWanted}` },
  { header: 'LEFTOVER', value: (one) => one.leftover },
  { header: 'ORPHANS', value: (one) => one.orphans },
  { header: 'DRAINED SINCE', value: (one) => formatTime(one.drainedAt?.toISOString()) },
  { header: 'IMAGE', value: (one) => one.image },
  { header: 'LAST CHECK', value: ({ check }) => formatCheck(check) },
  { header: 'ERROR', value: ({ check }) => check?.error },
]

export function printStatus(status: FleetStatus, { json }: { readonly json?: true }): void {
  if (json) printJson(presentStatus(status))
  else {
    printTable(columns, status.regions)
    if (status.elsewhere.length > 0) printRemark(describeElsewhere(status.elsewhere))
  }
}

const formatCheck = (check: ProviderCheck | null): string => {
  if (!check) return 'never'
  return check.error === null
    ? `ok at ${formatTime(check.checkedAt.toISOString())}`
    : `failing since ${formatTime((check.failingSince ?? check.checkedAt).toISOString())}`
}

export const describeElsewhere = (elsewhere: FleetStatus['elsewhere']): string => {
  const counts = elsewhere.map(({ region, count }) => `${region} (${count})`).join(', ')
  return `Instances exist in regions that are not in SVC_REGIONS: ${counts}. Put these regions back until their instances are gone.`
}

/** The status as JSON, with the names of the operators' API. */
const presentStatus = ({ regions, elsewhere }: FleetStatus): object => ({
  regions: regions.map((one) => ({
    region: one.region,
    provider: one.provider,
    capacity: one.capacity,
    sessions: one.sessions,
    instances: {
      bound: one.bound,
      warm_ready: one.warmReady,
      warm_booting: one.warmBooting,
      warm_wanted: one.warmWanted,
      leftover: one.leftover,
      orphans: one.orphans,
    },
    drained_at: one.drainedAt?.toISOString() ?? null,
    image: one.image,
    checked_at: one.check?.checkedAt.toISOString() ?? null,
    failing_since: one.check?.failingSince?.toISOString() ?? null,
    check_error: one.check?.error ?? null,
  })),
  regions_not_configured: elsewhere,
})
