/** How full the regions are, for everyone. */
import type { Sql } from '../../db/connection.ts'
import { listRegionRows } from '../../db/fleet/regions.ts'
import { type CapacityStatus, capacityStatusOf } from '../../domain/fleet/regions.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import { memoizeWithTtl } from '../../platform/memoize-with-ttl.ts'

export interface RegionStatuses {
  /** In the configured order. */
  readonly regions: readonly { readonly region: RegionConfig; readonly status: CapacityStatus }[]
  readonly asOf: Date
}

export type FindRegionStatuses = () => Promise<RegionStatuses>

/** The capacity status is public, so the work for it does not grow with the number of requests. */
const statusMillisMax = 1000

export const createFindRegionStatuses = (sql: Sql, regions: readonly RegionConfig[]): FindRegionStatuses =>
  memoizeWithTtl(statusMillisMax, async () => {
    const asOf = new Date()
    const rows = await listRegionRows(
      sql,
      regions.map(({ region }) => region),
    )
    const use = new Map(rows.map((row) => [row.region, row]))
    return {
      regions: regions.map((region) => {
        const row = use.get(region.region)
        return { region, status: row ? capacityStatusOf(region, row) : 'full' }
      }),
      asOf,
    }
  })
