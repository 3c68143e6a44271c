/** The points of a session as CSV: one row for each 10 s. */

import { expectSuccess } from '../../client/api-error.ts'
import { formatCsv } from '../csv.ts'
import type { PageHandler } from '../page.ts'
import { problemPage } from './problem.tsx'

const head = ['at_utc', 'bitrate_kbps', 'links', 'loss_pct', 'rtt_ms', 'players'] as const

export const csv: PageHandler = async (visit) => {
  const path = { id: visit.params.session_id ?? '' }
  const result = await visit.api.GET('/api/v1/relay/sessions/{id}/record', { params: { path } })
  if (result.response.status === 404) return problemPage('not_found')
  const { from, points } = expectSuccess(result, 'The request of the stream record')
  const rows = points.map((point) => [
    point.at,
    point.bitrate_kbps,
    point.links,
    point.loss_pct ?? '',
    point.rtt_ms ?? '',
    point.players,
  ])
  return {
    download: {
      fileName: `stream-${from.slice(0, 10)}.csv`,
      contentType: 'text/csv; charset=utf-8',
      content: formatCsv([head, ...rows]),
    },
  }
}
