/** Relay time by day as a chart and as a table, and by relay. */
import type { UsageByDay } from '../api-replies.ts'
import { type Bar, Legend, otherLabel, StackedBars } from '../charts/stacked-bars.tsx'
import { formatDuration } from '../time-text.tsx'

interface UsageProps {
  readonly usage: UsageByDay
}

const dayMillis = 86_400_000
/** A longer cycle is shown by its latest days. */
const chartDaysMax = 62

/** The name of a connection, or of all that the API does not list by name. */
export const nameOf = (connectionId: string | null): string => connectionId ?? otherLabel

export function DaysChart({ usage }: UsageProps) {
  const labels = usage.connections.map((connection) => nameOf(connection.connection_id))
  return (
    <>
      <StackedBars
        bars={barsOf(usage, labels)}
        today={usage.as_of.slice(0, 10)}
        label="Relay time of each day in UTC. The table below has the same numbers."
      />
      <Legend labels={labels} />
    </>
  )
}

function barsOf(usage: UsageByDay, labels: readonly string[]): Bar[] {
  const parts = new Map(
    usage.days.map(({ day, connections }) => [
      day,
      connections.map(({ connection_id: id, seconds }) => ({
        label: nameOf(id),
        seconds,
        series: id === null ? 4 : labels.indexOf(id),
      })),
    ]),
  )
  return chartDays(usage).map((day) => ({
    day,
    parts: (parts.get(day) ?? []).toSorted((a, b) => a.series - b.series),
  }))
}

/** All days of the cycle, or the latest of a long one. */
function chartDays({ cycle_start: start, cycle_end: end, as_of: now }: UsageByDay): string[] {
  const first = Math.floor(Date.parse(start) / dayMillis)
  const last = Math.floor((Date.parse(end) - 1) / dayMillis)
  if (last - first < chartDaysMax) return daysBetween(first, last)
  const today = Math.floor(Date.parse(now) / dayMillis)
  return daysBetween(Math.max(first, today - chartDaysMax + 1), today)
}

const daysBetween = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, index) =>
    new Date((first + index) * dayMillis).toISOString().slice(0, 10),
  )

export const DaysTable = ({ usage }: UsageProps) => (
  <details>
    <summary>Show as a table</summary>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards scroll it where it does not fit. */}
    <section class="table-scroll" tabIndex={0} aria-label="Relay time by day">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Day (UTC)</th>
            {usage.connections.map(({ connection_id: id }) => (
              <th key={id} scope="col" class="number">
                {nameOf(id)}
              </th>
            ))}
            <th scope="col" class="number">
              Total
            </th>
          </tr>
        </thead>
        <tbody>
          {usage.days.map(({ day, seconds, connections }) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {usage.connections.map(({ connection_id: id }) => (
                <td key={id} class="number">
                  {formatDuration(connections.find((connection) => connection.connection_id === id)?.seconds ?? 0)}
                </td>
              ))}
              <td class="number">{formatDuration(seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  </details>
)

export const RelaysTable = ({ usage }: UsageProps) => (
  <section class="card" aria-labelledby="relays">
    <h2 id="relays">By relay</h2>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards scroll it where it does not fit. */}
    <section class="table-scroll" tabIndex={0} aria-label="Relay time by relay">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Relay</th>
            <th scope="col" class="number">
              Relay time
            </th>
            <th scope="col" class="number">
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {usage.connections.map(({ connection_id: id, seconds }) => (
            <tr key={id} data-connection={id ?? 'other'} data-seconds={seconds}>
              <th scope="row">{nameOf(id)}</th>
              <td class="number">{formatDuration(seconds)}</td>
              <td class="number">{Math.round((seconds * 100) / Math.max(1, usage.consumed_seconds))} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  </section>
)
