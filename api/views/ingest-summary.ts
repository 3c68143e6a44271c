/** The last ingest summary of a relay and the totals of its session, for operators. */
import { z } from 'zod'
import type { IngestSummaryRow } from '../../db/relay/health.ts'
import { ingestEngines } from '../../domain/relay/ingest.ts'
import { shownTotals } from '../../domain/relay/ingest-totals.ts'
import { present } from '../http/present.ts'
import { timestamp } from '../http/schemas.ts'
import { StreamTotals } from './stream-totals.ts'

export const IngestSummaryView = z
  .object({
    publishing: z.boolean(),
    bitrate_kbps: z.int(),
    rtt_ms: z.number().nullable(),
    loss_pct: z.number().nullable(),
    repeat_pct: z.number().nullable(),
    links: z.int(),
    players: z.int(),
    engine: z.enum(ingestEngines).nullable(),
    publishing_since: timestamp,
    reported_at: timestamp,
    ...StreamTotals.shape,
  })
  .meta({ id: 'IngestSummary' })

export const presentIngestSummary = (row: IngestSummaryRow): z.infer<typeof IngestSummaryView> =>
  present(IngestSummaryView, {
    ...row,
    ...shownTotals(row),
    publishing: row.isPublishing,
    reportedAt: row.ingestAt,
  })
