/** `npm run fleet -- status`: the regions as Postgres has them, without a call to a provider. */
import type { Database } from '../../db/connection.ts'
import { countInstancesElsewhere } from '../../db/fleet/instance-comparison.ts'
import { countOrphans } from '../../db/fleet/orphans.ts'
import { listRegionRows } from '../../db/fleet/regions.ts'
import { listProviderChecks, type ProviderCheck } from '../../db/operations/provider-checks.ts'
import type { Config } from '../../platform/config/config.ts'
import { imageKey } from '../../platform/config/regions.ts'
import { formatTable } from '../text-table.ts'

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

export async function readFleetStatus(sql: Database, { regions }: Pick<Config, 'regions'>): Promise<FleetStatus> {
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

const header = [
  'region',
  'provider',
  'capacity',
  'sessions',
  'bound',
  'warm ready/booting/wanted',
  'leftover',
  'orphans',
  'drained',
  'image',
  'last check',
]

export function formatStatus({ regions, elsewhere }: FleetStatus): string {
  const rows = regions.map((one) => [
    one.region,
    one.provider,
    String(one.capacity),
    String(one.sessions),
    String(one.bound),
    `${one.warmReady}/${one.warmBooting}/${one.warmWanted}`,
    String(one.leftover),
    String(one.orphans),
    one.drainedAt ? `since ${one.drainedAt.toISOString()}` : 'no',
    one.image,
    formatCheck(one.check),
  ])
  return [
    ...formatTable([header, ...rows]),
    ...regions.flatMap(({ region, check }) => (check?.error ? ['', `${region}: ${check.error}`] : [])),
    ...(elsewhere.length > 0 ? ['', formatElsewhere(elsewhere)] : []),
    '',
  ].join('\n')
}

const formatCheck = (check: ProviderCheck | null): string => {
  if (!check) return 'never'
  return check.error === null
    ? `ok at ${check.checkedAt.toISOString()}`
    : `failing since ${(check.failingSince ?? check.checkedAt).toISOString()}`
}

export const formatElsewhere = (elsewhere: FleetStatus['elsewhere']): string => {
  const counts = elsewhere.map(({ region, count }) => `${region} (${count})`).join(', ')
  return `Instances exist in regions that are not in SVC_REGIONS: ${counts}. Put these regions back until their instances are gone.`
}

/** The status as JSON, with the names of the operators' API. */
export const presentStatus = ({ regions, elsewhere }: FleetStatus): object => ({
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
