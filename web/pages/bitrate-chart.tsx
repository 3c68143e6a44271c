/** The bitrate of the last ten minutes as a line. A gap of more than a slot without a report interrupts it. */
import type { SessionDetail } from '../api-replies.ts'
import { formatBitrate } from '../stream-text.ts'

type Points = SessionDetail['recent_bitrate']

const [width, height] = [600, 80]
const slotMillis = 10_000
const slots = 60

export function BitrateChart({ points }: { readonly points: Points }) {
  const peak = Math.max(...points.map(({ kbps }) => kbps), 1)
  const lastAt = Date.parse(points.at(-1)?.at ?? '')
  const x = (at: string) => Math.round(width - ((lastAt - Date.parse(at)) / (slotMillis * slots)) * width)
  const y = (kbps: number) => Math.round(height - (kbps / peak) * height)
  return (
    <svg
      class="chart"
      viewBox={`-2 -2 ${width + 4} ${height + 4}`}
      role="img"
      aria-label={`Bitrate of the last ten minutes: now ${formatBitrate(points.at(-1)?.kbps ?? 0)}, at most ${formatBitrate(peak)}`}
    >
      {splitAtGaps(points).map((line) => (
        <polyline key={line[0]?.at} points={line.map(({ at, kbps }) => `${x(at)},${y(kbps)}`).join(' ')} />
      ))}
    </svg>
  )
}

function splitAtGaps(points: Points): Points[] {
  const lines: Points[number][][] = []
  let previousAt = Number.NEGATIVE_INFINITY
  for (const point of points) {
    const at = Date.parse(point.at)
    // Reports come about once per slot, so now and then one slot has none.
    if (at - previousAt > 2 * slotMillis) lines.push([])
    lines.at(-1)?.push(point)
    previousAt = at
  }
  return lines
}
