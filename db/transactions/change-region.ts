/** Drains and resumes of regions by operators. */
import { recordAuditEntry } from '../audit.ts'
import type { Database } from '../connection.ts'
import { drainRegion, listRegionRows, type RegionRow, resumeRegion } from '../fleet/regions.ts'

export type RegionAction = 'drain' | 'resume'

const changes = {
  drain: { write: drainRegion, audited: 'region_drained' },
  resume: { write: resumeRegion, audited: 'region_resumed' },
} as const

export interface OperatorAct {
  readonly ip?: string | undefined
  readonly reason?: string | undefined
}

/**
 * Drains or resumes a region and audits it, in one transaction. Safe to repeat.
 * @returns the region after the change.
 */
export const recordRegionChange = (
  sql: Database,
  region: string,
  action: RegionAction,
  { ip, reason }: OperatorAct = {},
): Promise<RegionRow> =>
  sql.begin(async (tx): Promise<RegionRow> => {
    const { write, audited } = changes[action]
    await write(tx, region)
    await recordAuditEntry(tx, {
      initiator: 'operator',
      action: audited,
      ip,
      detail: { region, ...(reason === undefined ? {} : { reason }) },
    })
    const [row] = await listRegionRows(tx, [region])
    if (!row) throw new Error('the query of a region returned no row')
    return row
  }) as Promise<RegionRow>
