/** `svc fleet status`: the regions as Postgres has them, without a call to a provider. */
import { countInstancesElsewhere } from '../../db/fleet/instance-comparison.ts'
import { countOrphans } from '../../db/fleet/orphans.ts'
import { listRegionRows, type RegionRow } from '../../db/fleet/regions.ts'
import { listProviderChecks } from '../../db/operations/provider-checks.ts'
import { imageKey, type RegionConfig } from '../../platform/config/regions.ts'
import { type Column, formatTime, printJson, printRemark, printTable } from '../svc/output.ts'
import { type OutputOptions, type WorkerAccess, withWorkerAccess } from './worker-access.ts'

type FleetStatus = Awaited<ReturnType<typeof readFleetStatus>>
type RegionStatus = FleetStatus['regions'][number]

/** With the names of the operators' API. */
async function readFleetStatus({ config: { regions }, sql }: WorkerAccess) {
  const names = regions.map(({ region }) => region)
  const [rows, orphans, checks, elsewhere] = await Promise.all([
    listRegionRows(sql, names),
    countOrphans(sql),
    listProviderChecks(sql),
    countInstancesElsewhere(sql, names),
  ])
  const presentRegion = (config: RegionConfig, row: RegionRow) => {
    const { region, provider, capacity, warm } = config
    const check = checks.find((candidate) => candidate.region === region)
    return {
      region,
      provider,
      capacity,
      sessions: row.sessions,
      instances: {
        bound: row.bound,
        warm_ready: row.warmReady,
        warm_booting: row.warmBooting,
        warm_wanted: row.isDrained ? 0 : warm,
        leftover: row.leftover,
        orphans: orphans.find((candidate) => candidate.region === region)?.orphans ?? 0,
      },
      drained_at: row.drainedAt,
      image: imageKey(config),
      /** Of the last check of its provider; null before the first. */
      checked_at: check?.checkedAt ?? null,
      failing_since: check?.failingSince ?? null,
      check_error: check?.error ?? null,
    }
  }
  return {
    regions: rows.flatMap((row) => {
      const config = regions.find(({ region }) => region === row.region)
      return config ? [presentRegion(config, row)] : []
    }),
    regions_not_configured: elsewhere,
  }
}

const columns: readonly Column<RegionStatus>[] = [
  { header: 'REGION', value: ({ region }) => region },
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'CAPACITY', value: ({ capacity }) => capacity },
  { header: 'SESSIONS', value: ({ sessions }) => sessions },
  { header: 'BOUND', value: ({ instances }) => instances.bound },
  {
    header: 'WARM READY/BOOTING/WANTED',
    value: ({ instances }) => `${instances.warm_ready}/${instances.warm_booting}/${instances.warm_wanted}`,
  },
  { header: 'LEFTOVER', value: ({ instances }) => instances.leftover },
  { header: 'ORPHANS', value: ({ instances }) => instances.orphans },
  { header: 'DRAINED SINCE', value: ({ drained_at }) => formatTime(drained_at) },
  { header: 'IMAGE', value: ({ image }) => image },
  { header: 'LAST CHECK', value: formatCheck },
  { header: 'ERROR', value: ({ check_error }) => check_error },
]

function formatCheck({ checked_at, failing_since, check_error }: RegionStatus): string {
  if (checked_at === null) return 'never'
  return check_error === null
    ? `ok at ${formatTime(checked_at)}`
    : `failing since ${formatTime(failing_since ?? checked_at)}`
}

export async function showStatus({ json }: OutputOptions): Promise<void> {
  const status = await withWorkerAccess(readFleetStatus)
  if (json) return printJson(status)
  printTable(columns, status.regions)
  if (status.regions_not_configured.length > 0) printRemark(describeElsewhere(status.regions_not_configured))
}

export const describeElsewhere = (elsewhere: FleetStatus['regions_not_configured']): string => {
  const counts = elsewhere.map(({ region, count }) => `${region} (${count})`).join(', ')
  return `Instances exist in regions that are not in SVC_REGIONS: ${counts}. Put these regions back until their instances are gone.`
}
