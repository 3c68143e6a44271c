/**
 * The chart of a whole session: the bitrate, a second line, and what happened as marks. `evening.js` zooms it with the
 * values in `data-evening`.
 */
import type { DescribedEvent } from '../record-event-texts.ts'
import { formatBitrate, formatLinks } from '../stream-text.ts'
import { DateTime, Instant } from '../time-text.tsx'
import { findNearest, formatDistance, viewAround } from './evening-moment.ts'
import { drawLines, type EveningSeries, peakOf, type SeriesName, seriesNames, type View } from './evening-series.ts'

const size = { width: 1200, height: 240 }
const tickPlaces = [0, 0.25, 0.5, 0.75, 1]
const secondsTicksMaxMillis = 600_000

interface EveningChartProps {
  readonly series: EveningSeries
  readonly events: readonly DescribedEvent[]
  readonly range: View
  /** The second line. */
  readonly second?: SeriesName | undefined
  /** The moment to mark, in milliseconds since 1970. */
  readonly at?: number | undefined
  /** The time of day to mark, in the zone of the visitor. */
  readonly clock?: string | undefined
  /** The address of the page with another second line. */
  readonly seriesHref?: (series: SeriesName | undefined) => string
}

export function EveningChart({ series, events, range, second, at, clock, seriesHref }: EveningChartProps) {
  const view = at === undefined ? range : viewAround(at, range)
  return (
    <figure
      class="evening"
      data-refreshes="evening"
      data-evening={toData(series, events, range)}
      data-at={at}
      data-clock={clock}
    >
      <Moment at={at} events={events} />
      {seriesHref ? <SeriesChoice series={series} second={second} hrefOf={seriesHref} /> : null}
      <p class="row apart muted">
        <span data-peak>{`Bitrate, up to ${formatBitrate(peakOf(series.bitrate))}`}</span>
        <span class="evening-second-label" data-second-label>
          {second ? labelOf(series, second) : ''}
        </span>
      </p>
      <div class="evening-plot" data-plot>
        <Plot series={series} events={events} view={view} second={second} at={at} />
      </div>
      <p class="row apart muted evening-ticks" aria-hidden="true">
        {tickPlaces.map((place) => (
          <Tick key={place} at={view.from + place * (view.to - view.from)} span={view.to - view.from} />
        ))}
      </p>
      <Zoom />
      <p class="muted">
        Shown:{' '}
        <span role="status" data-shown>
          <DateTime at={toIso(view.from)} /> to <DateTime at={toIso(view.to)} />
        </span>
      </p>
    </figure>
  )
}

const toIso = (millis: number): string => new Date(millis).toISOString()

/** What `evening.js` draws from. */
const toData = (series: EveningSeries, events: readonly DescribedEvent[], range: View): string =>
  JSON.stringify({
    ...series,
    ...range,
    events: events.map(({ at, tone, text }) => [Date.parse(at), tone ?? '', text]),
  })

interface PlotProps {
  readonly series: EveningSeries
  readonly events: readonly DescribedEvent[]
  readonly view: View
  readonly second: SeriesName | undefined
  readonly at: number | undefined
}

function Plot({ series, events, view, second, at }: PlotProps) {
  const { startAt, bitrate, others } = series
  const lines = drawLines(bitrate, startAt, view, peakOf(bitrate), size)
  const values = second && others[second]
  const x = (millis: number) => Math.round(((millis - view.from) / (view.to - view.from)) * size.width * 10) / 10
  return (
    <svg
      class="chart evening-chart"
      viewBox={`0 -2 ${size.width} ${size.height + 4}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={summarize(series, events)}
    >
      <g data-area>
        {lines.map((line) => (
          <polygon key={line} points={closeArea(line)} />
        ))}
      </g>
      <g data-lines>
        {lines.map((line) => (
          <polyline key={line} points={line} vector-effect="non-scaling-stroke" />
        ))}
      </g>
      <g data-second>
        {values
          ? drawLines(values, startAt, view, peakOf(values), size).map((line) => (
              <polyline key={line} points={line} vector-effect="non-scaling-stroke" />
            ))
          : null}
      </g>
      <g data-marks>
        {events.map((event) => (
          <Mark key={`${event.at} ${event.text}`} x={x(Date.parse(event.at))} tone={event.tone} text={event.text} />
        ))}
      </g>
      <g data-moment>{at === undefined ? null : <Mark x={x(at)} tone="moment" text="The moment of the address" />}</g>
    </svg>
  )
}

interface MarkProps {
  readonly x: number
  readonly tone: string | undefined
  readonly text: string
}

const Mark = ({ x, tone = '', text }: MarkProps) => (
  <line class={tone} x1={x} x2={x} y1="-2" y2={size.height + 2} vector-effect="non-scaling-stroke">
    <title>{text}</title>
  </line>
)

/** A line with the ground below it. */
function closeArea(line: string): string {
  const xOf = (point = '') => point.slice(0, point.indexOf(','))
  const points = line.split(' ')
  return `${xOf(points[0])},${size.height} ${line} ${xOf(points.at(-1))},${size.height}`
}

function summarize({ bitrate }: EveningSeries, events: readonly DescribedEvent[]): string {
  const present = bitrate.filter((value) => value !== null)
  const lowest = present.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY)
  const average = present.reduce((sum, value) => sum + value, 0) / present.length
  const count = events.length === 1 ? '1 event' : `${events.length} events`
  const highest = formatBitrate(peakOf(bitrate))
  return `Bitrate: ${formatBitrate(lowest)} to ${highest}, ${formatBitrate(average)} on average. ${count}, listed below.`
}

const Tick = ({ at, span }: { readonly at: number; readonly span: number }) => {
  const iso = toIso(at)
  const hasSeconds = span < secondsTicksMaxMillis
  return (
    <time datetime={iso} data-local={hasSeconds ? 'hms' : 'hm'}>
      {iso.slice(11, hasSeconds ? 19 : 16)}
    </time>
  )
}

const seriesTexts: Readonly<Record<SeriesName, string>> = {
  loss: 'Loss',
  rtt: 'Round trip',
  links: 'Links',
  players: 'Players',
}

const peakTexts: Readonly<Record<SeriesName, (peak: number) => string>> = {
  loss: (peak) => `${peak} %`,
  rtt: (peak) => `${peak} ms`,
  links: formatLinks,
  players: (peak) => (peak === 1 ? '1 player' : `${peak} players`),
}

const labelOf = ({ others }: EveningSeries, name: SeriesName): string =>
  `${seriesTexts[name]}, up to ${peakTexts[name](peakOf(others[name] ?? []))}`

interface SeriesChoiceProps {
  readonly series: EveningSeries
  readonly second: SeriesName | undefined
  readonly hrefOf: (series: SeriesName | undefined) => string
}

const SeriesChoice = ({ series, second, hrefOf }: SeriesChoiceProps) => (
  <nav class="tabs" aria-label="Second line of the chart">
    <a href={hrefOf(undefined)} data-series="" data-text="" aria-current={second === undefined ? 'true' : undefined}>
      Bitrate only
    </a>
    {seriesNames.map((name) => (
      <a
        key={name}
        href={hrefOf(name)}
        data-series={name}
        data-text={labelOf(series, name)}
        aria-current={second === name ? 'true' : undefined}
      >
        {seriesTexts[name]}
      </a>
    ))}
  </nav>
)

const zoomButtons = [
  ['in', 'Zoom in'],
  ['out', 'Zoom out'],
  ['earlier', 'Earlier'],
  ['later', 'Later'],
  ['reset', 'Show all'],
] as const

/** Without scripts there is nothing to zoom. */
const Zoom = () => (
  <div class="stack scripted">
    <div class="row">
      {zoomButtons.map(([name, text]) => (
        <button key={name} class="second" type="button" data-zoom={name}>
          {text}
        </button>
      ))}
    </div>
    <p class="muted" id="evening-keys">
      Drag across the chart to zoom in, or pinch it. With the chart in focus: + and − zoom, the arrow keys move, 0 shows
      all.
    </p>
  </div>
)

interface MomentProps {
  readonly at: number | undefined
  readonly events: readonly DescribedEvent[]
}

/** Filled by `evening.js` for a time of day. */
const Moment = ({ at, events }: MomentProps) => (
  <p class="evening-moment" data-moment-text hidden={at === undefined}>
    {at === undefined ? null : (
      <>
        <Instant at={toIso(at)} />: {nameNearest(events, at)}
      </>
    )}
  </p>
)

const nameNearest = (events: readonly DescribedEvent[], at: number): string =>
  findNearest(events, at)
    .map((event) => `${event.text} (${formatDistance(Date.parse(event.at), at)})`)
    .join(' · ') || 'nothing happened within ten minutes.'
