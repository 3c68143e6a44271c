/** The bitrate of ten minutes with its scale. */
import { formatBitrate } from '../stream-text.ts'
import { Clock } from '../time-text.tsx'
import { type Bitrates, bitrateLines, summarizeBitrates } from './bitrate-lines.ts'

const size = { width: 600, height: 120 }

interface BitrateChartProps {
  readonly bitrates: Bitrates
  /** Whether the last bitrate is that of the moment. */
  readonly isLive: boolean
}

export function BitrateChart({ bitrates, isLive }: BitrateChartProps) {
  const { min, average, max } = summarizeBitrates(bitrates)
  const last = bitrates.at(-1)
  return (
    <figure class="bitrate-chart">
      <div class="row apart muted">
        <span>{formatBitrate(max)}</span>
        {isLive && last ? <span>now {formatBitrate(last.kbps)}</span> : null}
      </div>
      <svg
        class="chart"
        viewBox={`0 -2 ${size.width} ${size.height + 4}`}
        height={size.height}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Bitrate of ${isLive ? 'the last ten minutes' : 'the last ten minutes before its end'}: ${formatBitrate(min)} to ${formatBitrate(max)}, ${formatBitrate(average)} on average`}
      >
        {bitrateLines(bitrates, size).map((line) => (
          <polyline key={line[0]} points={line.join(' ')} vector-effect="non-scaling-stroke" />
        ))}
      </svg>
      <div class="row apart muted">
        <span>ten minutes earlier</span>
        {last ? (
          <span>
            <Clock at={last.at} />
          </span>
        ) : null}
      </div>
    </figure>
  )
}
