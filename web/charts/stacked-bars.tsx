/**
 * Hours per day as stacked bars. The bars are SVG that stretches to the width of the page; the axes are text beside it,
 * which keeps its size. The same numbers stand in a table on the page, which screen readers read instead.
 */
import { formatHours } from '../time-text.tsx'

export interface BarPart {
  readonly label: string
  readonly seconds: number
  /** The place of its colour: 0 to 3, and 4 for all others together. */
  readonly series: number
}

export interface Bar {
  /** `2026-11-22`, in UTC. */
  readonly day: string
  readonly parts: readonly BarPart[]
}

interface StackedBarsProps {
  readonly bars: readonly Bar[]
  /** The day that is marked. */
  readonly today: string
  /** What the chart shows, for screen readers. */
  readonly label: string
}

const height = 100
const slot = 10
const barWidth = 7

export function StackedBars({ bars, today, label }: StackedBarsProps) {
  const ticks = ticksFor(Math.max(...bars.map(sumOf)))
  const top = ticks.at(-1) ?? 1
  const width = bars.length * slot
  const todayIndex = bars.findIndex(({ day }) => day === today)
  return (
    <div class="bars" role="img" aria-label={label}>
      <div class="bars-hours" aria-hidden="true">
        {ticks.toReversed().map((seconds) => (
          <span key={seconds}>{seconds === 0 ? '0' : formatHours(seconds)}</span>
        ))}
      </div>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {todayIndex < 0 ? null : <rect class="bars-today" x={todayIndex * slot} width={slot} height={height} />}
        {ticks.map((seconds) => {
          const y = height - (seconds / top) * height
          return <line key={seconds} class="bars-line" x1="0" x2={width} y1={y} y2={y} />
        })}
        {bars.map((bar, index) => (
          <BarColumn key={bar.day} bar={bar} x={index * slot + (slot - barWidth) / 2} top={top} />
        ))}
      </svg>
      <div class="bars-days" aria-hidden="true">
        {bars.map(({ day }, index) => (
          <span key={day} class={index === todayIndex ? 'today' : undefined}>
            {hasDayLabel(index, todayIndex) ? Number(day.slice(8)) : null}
          </span>
        ))}
      </div>
    </div>
  )
}

interface BarColumnProps {
  readonly bar: Bar
  readonly x: number
  /** The seconds at the top of the chart. */
  readonly top: number
}

function BarColumn({ bar, x, top }: BarColumnProps) {
  let y = height
  return (
    <g data-day={bar.day} data-seconds={sumOf(bar)}>
      {bar.parts.map(({ label, seconds, series }) => {
        const partHeight = (seconds / top) * height
        y -= partHeight
        return (
          <rect key={label} class={`series-${series}`} x={x} y={round(y)} width={barWidth} height={round(partHeight)}>
            <title>{`${bar.day} (UTC), ${label}: ${formatHours(seconds)}`}</title>
          </rect>
        )
      })}
    </g>
  )
}

const sumOf = ({ parts }: Bar): number => parts.reduce((sum, { seconds }) => sum + seconds, 0)

const round = (value: number): number => Math.round(value * 100) / 100

const stepMinutes = [5, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1440]

/** From 0 to at least the largest value, in at most four equal steps of a round length. */
function ticksFor(maxSeconds: number): number[] {
  const days = Math.ceil(maxSeconds / 4 / 86_400)
  const step = (stepMinutes.find((minutes) => minutes * 60 * 4 >= maxSeconds) ?? days * 1440) * 60
  const count = Math.max(1, Math.ceil(maxSeconds / step))
  return Array.from({ length: count + 1 }, (_, index) => index * step)
}

/** Every fifth day and today, whose label needs the room of its neighbours. */
const hasDayLabel = (index: number, todayIndex: number): boolean =>
  index === todayIndex || (index % 5 === 0 && (todayIndex < 0 || Math.abs(index - todayIndex) > 2))

/** @param labels in the order of the series. */
export const Legend = ({ labels }: { readonly labels: readonly string[] }) => (
  <ul class="legend">
    {labels.map((label, series) => (
      <li key={label}>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <rect class={`series-${label === otherLabel ? 4 : series}`} width="12" height="12" rx="3" />
        </svg>
        {label}
      </li>
    ))}
  </ul>
)

/** The label of all connections that are not listed by name. */
export const otherLabel = 'Other relays'
