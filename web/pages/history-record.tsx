/** The stream record on the page of a session: chart, events, and the same as a table. */

import type { StreamRecord } from '../api-replies.ts'
import { EveningChart } from '../charts/evening-chart.tsx'
import { parseClock, parseInstant } from '../charts/evening-moment.ts'
import { type SeriesName, seriesNames, toSeries } from '../charts/evening-series.ts'
import type { DescribedEvent } from '../record-event-texts.ts'
import { Instant } from '../time-text.tsx'
import { RecordTable } from './history-record-table.tsx'

interface EveningProps {
  readonly record: StreamRecord
  readonly isRunning: boolean
  readonly events: readonly DescribedEvent[]
  /** Of the page. */
  readonly query: URLSearchParams
  /** Of the page, without its query. */
  readonly path: string
}

export function Evening({ record, isRunning, events, query, path }: EveningProps) {
  const series = toSeries(record.points)
  if (!series)
    return (
      <p class="muted" data-record="empty" data-refreshes="evening">
        {isRunning
          ? 'Nothing has come in yet.'
          : 'There are no points of this stream. Nothing came in, or it was so long ago that they are deleted.'}
      </p>
    )
  const at = query.get('at')
  const range = { from: Date.parse(record.from), to: Date.parse(record.to) }
  const seriesHref = (second: SeriesName | undefined) => {
    const parameters = new URLSearchParams({ ...(at ? { at } : {}), ...(second ? { series: second } : {}) })
    return `${path}${parameters.size > 0 ? `?${parameters}` : ''}`
  }
  return (
    <>
      <EveningChart
        series={series}
        events={events}
        range={range}
        second={seriesNames.find((name) => name === query.get('series'))}
        at={parseInstant(at, range)}
        clock={parseClock(at)}
        seriesHref={seriesHref}
      />
      <RecordTable points={record.points} />
    </>
  )
}

interface EventListProps {
  readonly events: readonly DescribedEvent[]
  /** Of the page, without its query. */
  readonly path: string
}

/** Each time leads to the same moment in the chart. */
export const EventList = ({ events, path }: EventListProps) => (
  <ol class="timeline" data-refreshes="events">
    {events.map(({ event, at, text, tone, publicReason }) => (
      <li key={`${at} ${text}`} class={tone} data-event={event.kind} data-at={at}>
        <p>{text}</p>
        {publicReason === undefined ? null : <p data-public-reason>Support: {publicReason}</p>}
        <p>
          <a class="link" href={`${path}?at=${encodeURIComponent(at)}#evening`}>
            <Instant at={at} />
            <span class="unseen"> in the chart</span>
          </a>
        </p>
      </li>
    ))}
  </ol>
)
