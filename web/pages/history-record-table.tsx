/** The stream record as a table, for those who do not see charts: one row per ten minutes. */
import type { StreamPoint } from '../api-replies.ts'
import { formatBitrate } from '../stream-text.ts'
import { DateTime } from '../time-text.tsx'

const rowMillis = 600_000

export interface TenMinutes {
  /** The beginning of the ten minutes, RFC 3339. */
  readonly at: string
  readonly averageKbps: number
  readonly lowestKbps: number
  /** The greatest one, in percent; null without a figure. */
  readonly lossPct: number | null
  /** The fewest while a stream came in; 0 without one. */
  readonly links: number
  /** The most. */
  readonly players: number
}

/** Ten minutes without a point have no row. @param points oldest first. */
export function summarizeByTenMinutes(points: readonly StreamPoint[]): readonly TenMinutes[] {
  const parts = new Map<number, StreamPoint[]>()
  for (const point of points) {
    const begin = Math.floor(Date.parse(point.at) / rowMillis) * rowMillis
    const part = parts.get(begin)
    if (part) part.push(point)
    else parts.set(begin, [point])
  }
  return [...parts].map(([begin, part]) => summarize(begin, part))
}

function summarize(begin: number, part: readonly StreamPoint[]): TenMinutes {
  const bitrates = part.map((point) => point.bitrate_kbps)
  const losses = part.flatMap((point) => point.loss_pct ?? [])
  const links = part.flatMap((point) => (point.links > 0 ? point.links : []))
  return {
    at: new Date(begin).toISOString(),
    averageKbps: bitrates.reduce((sum, kbps) => sum + kbps, 0) / bitrates.length,
    lowestKbps: Math.min(...bitrates),
    lossPct: losses.length > 0 ? Math.max(...losses) : null,
    links: links.length > 0 ? Math.min(...links) : 0,
    players: Math.max(...part.map((point) => point.players)),
  }
}

export const RecordTable = ({ points }: { readonly points: readonly StreamPoint[] }) => (
  <div data-refreshes="evening-table">
    <details data-record-table>
      <summary>The same as a table</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard can then scroll it */}
      <section class="table-scroll" aria-label="Stream by ten minutes" tabIndex={0}>
        <table class="table as-cards evening-table">
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">Average</th>
              <th scope="col">Lowest</th>
              <th scope="col">Highest loss</th>
              <th scope="col">Fewest links</th>
              <th scope="col">Most players</th>
            </tr>
          </thead>
          <tbody>
            {summarizeByTenMinutes(points).map((row) => (
              <tr key={row.at}>
                <th scope="row">
                  <DateTime at={row.at} />
                </th>
                <td data-label="Average">{formatBitrate(row.averageKbps)}</td>
                <td data-label="Lowest">{formatBitrate(row.lowestKbps)}</td>
                <td data-label="Highest loss">{row.lossPct === null ? '–' : `${row.lossPct} %`}</td>
                <td data-label="Fewest links">{row.links}</td>
                <td data-label="Most players">{row.players}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  </div>
)
