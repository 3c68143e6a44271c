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
        region,
        provider,
        capacity,
        sessions,
        bound,
        warmReady,
        warmBooting,
        leftover,
        drainedAt,
        warmWanted: isDrained ? 0 : config.warm,
        orphans: orphans.find((candidate) => candidate.region === region)?.orphans ?? 0,
        image: imageKey(config),
        check: checks.find((candidate) => candidate.region === region) ?? null,
      }
    }),
  }
}

const columns: readonly Column<RegionStatus>[] = [
  { header: 'REGION', value: ({ region }) => region },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'CAPACITY', value: ({ capacity }) => capacity },
  { header: 'SESSIONS', value: ({ sessions }) => sessions },
  { header: 'BOUND', value: ({ bound }) => bound },
  {
    header: 'WARM READY/BOOTING/WANTED',
    value: ({ warmReady, warmBooting, warmWanted }) => `${warmReady}/${warmBooting}/${warmWanted}`,
  },
  { header: 'LEFTOVER', value: ({ leftover }) => leftover },
  { header: 'ORPHANS', value: ({ orphans }) => orphans },
  { header: 'DRAINED SINCE', value: ({ drainedAt }) => formatTime(drainedAt?.toISOString()) },
  { header: 'IMAGE', value: ({ image }) => image },
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
  regions: regions.map((region) => ({
    region: region.region,
    provider: region.provider,
    capacity: region.capacity,
    sessions: region.sessions,
    instances: {
      bound: region.bound,
      warm_ready: region.warmReady,
      warm_booting: region.warmBooting,
      warm_wanted: region.warmWanted,
      leftover: region.leftover,
      orphans: region.orphans,
    },
    drained_at: region.drainedAt?.toISOString() ?? null,
    image: region.image,
    checked_at: region.check?.checkedAt.toISOString() ?? null,
    failing_since: region.check?.failingSince?.toISOString() ?? null,
    check_error: region.check?.error ?? null,
  })),
  regions_not_configured: elsewhere,
})
