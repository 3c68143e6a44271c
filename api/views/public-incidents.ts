/** Incidents as everyone sees them. They name no account and no number of accounts. */
import { z } from 'zod'
import type { Sql } from '../../db/connection.ts'
import { type IncidentRow, listIncidents, readMeasuredSince } from '../../db/operations/incidents.ts'
import { incidentText } from '../../domain/operations/incident-texts.ts'
import { incidentKinds, incidentParts } from '../../domain/operations/incidents.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import { memoizeWithTtl } from '../../platform/memoize-with-ttl.ts'
import { id, timestamp } from '../http/schemas.ts'

export const IncidentView = z
  .object({
    id,
    region: z.string().nullable().describe('Null for an incident of the whole service.'),
    region_name: z.string().nullable(),
    part: z.enum(incidentParts).describe('`relays` and `starts` are parts of a region.'),
    kind: z.enum(incidentKinds).describe('`reported` incidents were added by the operator, the others were measured.'),
    title: z.string(),
    explanation: z.string().describe('What users noticed; may be empty.'),
    note: z.string().nullable().describe('What the operator says about it.'),
    began_at: timestamp,
    ended_at: timestamp.nullable().describe('Null while it goes on.'),
    updated_at: timestamp,
  })
  .meta({ id: 'Incident' })

export const IncidentsView = z.object({
  measured_since: timestamp.describe('Nothing is known of the time before.'),
  regions: z.array(z.object({ region: z.string(), display_name: z.string() })),
  incidents: z.array(IncidentView).describe('Those that have not ended, or ended in the last 90 days; newest first.'),
})

type Regions = readonly Pick<RegionConfig, 'region' | 'display_name'>[]

export function presentIncident(row: IncidentRow, regions: Regions): z.infer<typeof IncidentView> {
  const { region, part, kind, beganAt, endedAt, notedAt, note } = row
  const updatedAt = Math.max(...[beganAt, endedAt, notedAt].map((at) => at?.getTime() ?? 0))
  return {
    id: row.id,
    region,
    // A region that was removed has no other name any more.
    region_name: regions.find((known) => known.region === region)?.display_name ?? region,
    part,
    kind,
    ...incidentText(row),
    note,
    began_at: beganAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    updated_at: new Date(updatedAt).toISOString(),
  }
}

export type FindPublicIncidents = () => Promise<z.infer<typeof IncidentsView>>

/** Incidents are public, so the work for them does not grow with the number of requests. */
const incidentsMillisMax = 1000

export const createFindPublicIncidents = (sql: Sql, regions: Regions): FindPublicIncidents =>
  memoizeWithTtl(incidentsMillisMax, async () => {
    const [measuredSince, rows] = await Promise.all([readMeasuredSince(sql), listIncidents(sql)])
    return {
      measured_since: measuredSince.toISOString(),
      regions: regions.map(({ region, display_name }) => ({ region, display_name })),
      incidents: rows.map((row) => presentIncident(row, regions)),
    }
  })
