/** The numbers of the last hour as one bar per minute. The page has the same numbers in a table. */

interface Minute {
  /** RFC 3339. */
  readonly at: string
  readonly count: number
}

interface MinuteBarsProps {
  /** What is counted, such as `Relays started`. */
  readonly label: string
  /** Oldest first. */
  readonly minutes: readonly Minute[]
  /** The number of the chart colour. */
  readonly colour: 1 | 2 | 3 | 4
}

const [barWidth, gap, height] = [8, 2, 60]

export function MinuteBars({ label, minutes, colour }: MinuteBarsProps) {
  const most = Math.max(1, ...minutes.map(({ count }) => count))
  const total = minutes.reduce((sum, { count }) => sum + count, 0)
  const width = minutes.length * (barWidth + gap)
  return (
    <figure class="minute-bars" data-chart={label}>
      <figcaption class="row apart">
        <span>{label}</span>
        <strong data-total={total}>{total}</strong>
      </figcaption>
      <svg
        class={`bars chart-${colour}`}
        viewBox={`0 0 ${width} ${height + 2}`}
        role="img"
        aria-label={`${label} in the last hour: ${total} in total, at most ${most} in a minute`}
        preserveAspectRatio="none"
      >
        {minutes.map(({ at, count }, index) => (
          <rect
            key={at}
            x={index * (barWidth + gap)}
            y={height - Math.round((count / most) * height)}
            width={barWidth}
            // A minute without any has a line, so that the time without data shows too.
            height={Math.round((count / most) * height) + 2}
            class={count === 0 ? 'none' : undefined}
          />
        ))}
      </svg>
      <p class="row apart muted">
        <span>60 minutes ago</span>
        <span>now</span>
      </p>
    </figure>
  )
}
