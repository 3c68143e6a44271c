/** The bitrate of the last ten minutes beside a live relay, with its figures as text. */
import { formatBitrate } from '../stream-text.ts'
import { type Bitrates, bitrateLines, summarizeBitrates } from './bitrate-lines.ts'

const size = { width: 600, height: 48 }

/** Renders nothing without a line: before the second report, and before the first video. */
export function Sparkline({ bitrates }: { readonly bitrates: Bitrates }) {
  if (!hasLine(bitrates)) return null
  const { min, average, max } = summarizeBitrates(bitrates)
  const lines = bitrateLines(bitrates, size)
  return (
    <figure class="sparkline" data-sparkline={bitrates.length}>
      <svg
        class="chart"
        viewBox={`0 -2 ${size.width} ${size.height + 4}`}
        height={size.height}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {lines.map((line) => (
          <polygon key={line[0]} points={[base(line[0]), ...line, base(line.at(-1))].join(' ')} />
        ))}
        {lines.map((line) => (
          <polyline key={line[0]} points={line.join(' ')} vector-effect="non-scaling-stroke" />
        ))}
      </svg>
      <figcaption class="muted">
        Last 10 minutes: {formatBitrate(min)} to {formatBitrate(max)}, {formatBitrate(average)} on average
      </figcaption>
    </figure>
  )
}

export const hasLine = (bitrates: Bitrates): boolean => bitrates.length > 1 && bitrates.some(({ kbps }) => kbps > 0)

/** The point below another one on the base line. */
const base = (point = ''): string => `${point.split(',')[0]},${size.height}`
