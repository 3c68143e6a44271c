/** The bitrates of ten minutes as lines. A gap of more than a slot without a report interrupts them. */
import type { SessionDetail } from '../api-replies.ts'

export type Bitrates = SessionDetail['recent_bitrate']

const slotMillis = 10_000
const slots = 60

interface Size {
  readonly width: number
  readonly height: number
}

/** The points of each line as `x,y`. The last bitrate is at the right edge, the highest one at the top. */
export function bitrateLines(bitrates: Bitrates, { width, height }: Size): readonly (readonly string[])[] {
  const peak = Math.max(...bitrates.map(({ kbps }) => kbps), 1)
  const lastAt = Date.parse(bitrates.at(-1)?.at ?? '')
  const x = (at: string) => Math.round(width - ((lastAt - Date.parse(at)) / (slotMillis * slots)) * width)
  const y = (kbps: number) => Math.round(height - (kbps / peak) * height)
  return splitAtGaps(bitrates).map((line) => line.map(({ at, kbps }) => `${x(at)},${y(kbps)}`))
}

function splitAtGaps(bitrates: Bitrates): Bitrates[] {
  const lines: Bitrates[number][][] = []
  let previousAt = Number.NEGATIVE_INFINITY
  for (const bitrate of bitrates) {
    const at = Date.parse(bitrate.at)
    // Reports come about once per slot, so now and then one slot has none.
    if (at - previousAt > 2 * slotMillis) lines.push([])
    lines.at(-1)?.push(bitrate)
    previousAt = at
  }
  return lines
}

export interface BitrateSummary {
  readonly min: number
  readonly average: number
  readonly max: number
}

export function summarizeBitrates(bitrates: Bitrates): BitrateSummary {
  const all = bitrates.map(({ kbps }) => kbps)
  return {
    min: Math.min(...all),
    average: all.reduce((sum, kbps) => sum + kbps, 0) / all.length,
    max: Math.max(...all),
  }
}
