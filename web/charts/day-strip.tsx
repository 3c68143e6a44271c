/** The last days as one bar per day. Bars differ in height and colour, and the page lists the incidents as text. */
import type { IncidentDay } from '../../domain/operations/incident-days.ts'

interface DayStripProps {
  readonly days: readonly IncidentDay[]
  /** What the strip shows, for those who do not see it. */
  readonly label: string
}

const [slot, barWidth, height] = [4, 3, 28]

const barHeights: Readonly<Record<IncidentDay['level'], number>> = { fine: 12, incident: height, unmeasured: 2 }

export const DayStrip = ({ days, label }: DayStripProps) => (
  <svg
    class="day-strip"
    viewBox={`0 0 ${days.length * slot} ${height}`}
    role="img"
    aria-label={label}
    preserveAspectRatio="none"
  >
    {days.map(({ day, level }, index) => (
      <rect
        key={day}
        class={level}
        x={index * slot}
        y={height - barHeights[level]}
        width={barWidth}
        height={barHeights[level]}
        data-day={level === 'incident' ? day : undefined}
      />
    ))}
  </svg>
)

/** What the heights mean. */
export const DayStripLegend = () => (
  <ul class="row muted strip-legend">
    {(
      [
        ['incident', 'Incident'],
        ['fine', 'No incident'],
        ['unmeasured', 'Not measured'],
      ] as const
    ).map(([level, text]) => (
      <li key={level}>
        <svg class="day-strip" viewBox={`0 0 ${barWidth} ${height}`} aria-hidden="true">
          <rect class={level} y={height - barHeights[level]} width={barWidth} height={barHeights[level]} />
        </svg>
        {text}
      </li>
    ))}
  </ul>
)
