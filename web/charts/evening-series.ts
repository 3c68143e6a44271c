/** The stream record of a session as arrays with one value for each slot, which the page and its script draw from. */

export const slotMillis = 10_000
/** The most points that are drawn of a line: the lowest and the highest one of each column, once there are more. */
export const drawnPointsMax = 1200

export const seriesNames = ['loss', 'rtt', 'links', 'players'] as const
/** What can be drawn beside the bitrate. */
export type SeriesName = (typeof seriesNames)[number]

/** Null for a slot without a point, or without the figure. */
export type Values = readonly (number | null)[]

interface RecordedPoint {
  /** RFC 3339. */
  readonly at: string
  readonly bitrate_kbps: number
  readonly links?: number
  readonly loss_pct?: number | null
  readonly rtt_ms?: number | null
  readonly players?: number
}

export interface EveningSeries {
  /** The beginning of the first slot, in milliseconds since 1970. */
  readonly startAt: number
  readonly bitrate: Values
  /** Empty for a record that has the bitrate only. */
  readonly others: Readonly<Partial<Record<SeriesName, Values>>>
}

/** @param points oldest first. Undefined without any. */
export function toSeries(points: readonly RecordedPoint[]): EveningSeries | undefined {
  const [oldest, newest] = [points[0], points.at(-1)]
  if (!oldest || !newest) return undefined
  const startAt = Date.parse(oldest.at)
  const slots = Math.round((Date.parse(newest.at) - startAt) / slotMillis) + 1
  const spread = (read: (point: RecordedPoint) => number | null | undefined): Values => {
    const values: (number | null)[] = Array(slots).fill(null)
    for (const point of points) values[Math.round((Date.parse(point.at) - startAt) / slotMillis)] = read(point) ?? null
    return values
  }
  const bitrate = spread((point) => point.bitrate_kbps)
  if (oldest.links === undefined) return { startAt, bitrate, others: {} }
  const [loss, rtt] = [spread((point) => point.loss_pct), spread((point) => point.rtt_ms)]
  const [links, players] = [spread((point) => point.links), spread((point) => point.players)]
  return { startAt, bitrate, others: { loss, rtt, links, players } }
}

/** A drawn point: its slot, and its value. */
export type DrawnPoint = readonly [slot: number, value: number]

/**
 * The lines through the slots from `first` to `last`, with {@link drawnPointsMax} points in all at most: a column keeps
 * its lowest and its highest value. Two slots without a value interrupt a line; a single one does not, since reports
 * come about once per slot. `evening.js` does the same.
 */
export function reduceToLines(values: Values, first: number, last: number): readonly (readonly DrawnPoint[])[] {
  const count = last - first + 1
  const columns = count <= drawnPointsMax ? count : drawnPointsMax / 2
  const lines: DrawnPoint[][] = []
  let endSlot = Number.NEGATIVE_INFINITY
  for (let column = 0; column < columns; column += 1) {
    const begin = first + Math.floor((column * count) / columns)
    const end = first + Math.floor(((column + 1) * count) / columns)
    const present = extremesOf(values, begin, end)
    if (!present) continue
    if (present.begin - endSlot > 2) lines.push([])
    lines.at(-1)?.push(...present.points)
    endSlot = present.end
  }
  return lines
}

/** The lowest and the highest value of the slots, in their order, and the first and the last slot with a value. */
function extremesOf(values: Values, begin: number, end: number) {
  let [low, high, firstSlot, lastSlot] = [-1, -1, -1, -1]
  for (let slot = begin; slot < end; slot += 1) {
    const value = values[slot] ?? null
    if (value === null) continue
    if (firstSlot < 0) [low, high, firstSlot] = [slot, slot, slot]
    lastSlot = slot
    if (value < (values[low] ?? 0)) low = slot
    if (value > (values[high] ?? 0)) high = slot
  }
  if (firstSlot < 0) return undefined
  const slots = low === high ? [low] : [Math.min(low, high), Math.max(low, high)]
  const points = slots.map((slot): DrawnPoint => [slot, values[slot] ?? 0])
  return { points, begin: firstSlot, end: lastSlot }
}

/** A part of the time of a session, in milliseconds since 1970. */
export interface View {
  readonly from: number
  readonly to: number
}

interface Size {
  readonly width: number
  readonly height: number
}

/** The lines of a view as points of SVG, with the peak at the top. A slot at the edge of the view is drawn too. */
export function drawLines(
  values: Values,
  startAt: number,
  { from, to }: View,
  peak: number,
  { width, height }: Size,
): readonly string[] {
  const first = Math.max(0, Math.floor((from - startAt) / slotMillis) - 1)
  const last = Math.min(values.length - 1, Math.ceil((to - startAt) / slotMillis) + 1)
  const x = (slot: number) => Math.round(((startAt + slot * slotMillis - from) / (to - from)) * width * 10) / 10
  const y = (value: number) => Math.round(height - (value / peak) * height)
  return reduceToLines(values, first, last).map((line) => {
    const [point] = line
    // A single point is as wide as its slot.
    const drawn = line.length === 1 && point ? [point, [point[0] + 1, point[1]] as const] : line
    return drawn.map(([slot, value]) => `${x(slot)},${y(value)}`).join(' ')
  })
}

/** At least 1, so that a line of zeros is at the bottom. */
export const peakOf = (values: Values): number => values.reduce<number>((peak, value) => Math.max(peak, value ?? 0), 1)
