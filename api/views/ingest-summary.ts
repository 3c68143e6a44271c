/** The last ingest summary of a relay and the totals of its session, for operators. */
import { z } from 'zod'
import type { IngestSummaryRow } from '../../db/relay/health.ts'
import { ingestEngines } from '../../domain/relay/ingest.ts'
import { timestamp } from '../http/schemas.ts'
import { presentStreamTotals, StreamTotals } from './stream-totals.ts'

export const IngestSummaryView = z
  .object({
    publishing: z.boolean(),
    bitrate_kbps: z.int(),
    rtt_ms: z.number().nullable(),
    loss_pct: z.number().nullable(),
    links: z.int(),
    players: z.int(),
    engine: z.enum(ingestEngines).nullable(),
    publishing_since: timestamp,
    reported_at: timestamp,
    ...StreamTotals.shape,
  })
  .meta({ id: 'IngestSummary' })

export const presentIngestSummary = (row: IngestSummaryRow): z.infer<typeof IngestSummaryView> => ({
  publishing: row.isPublishing,
  bitrate_kbps: row.bitrateKbps,
  rtt_ms: row.rttMs,
  loss_pct: row.lossPct,
  links: row.links,
  players: row.players,
  engine: row.engine,
  publishing_since: row.publishingSince.toISOString(),
  reported_at: row.ingestAt.toISOString(),
  ...presentStreamTotals(row),
})
