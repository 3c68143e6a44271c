/** The lines of the chart of a session, and the points that they are reduced to. */
import { expect, test } from 'vitest'
import {
  drawLines,
  drawnPointsMax,
  reduceToLines,
  slotMillis,
  toSeries,
  type Values,
} from '../../../web/charts/evening-series.ts'

const script = '../../../web/assets/evening.js'
const { reduceToLines: reduceInBrowser } = (await import(script)) as { reduceToLines: typeof reduceToLines }

const evening = (slots: number): (number | null)[] => Array.from({ length: slots }, (_, slot) => 4000 + (slot % 7))
const startAt = Date.parse('2026-11-28T18:00:00Z')
const at = (slot: number) => new Date(startAt + slot * slotMillis).toISOString()

test('a record becomes one value for each slot, null where there is no point', () => {
  const point = { bitrate_kbps: 4000, links: 2, loss_pct: null, rtt_ms: 40, players: 1 }
  const series = toSeries([
    { ...point, at: at(0) },
    { ...point, at: at(3), loss_pct: 0.5, bitrate_kbps: 0 },
  ])
  expect(series).toEqual({
    startAt,
    bitrate: [4000, null, null, 0],
    others: {
      loss: [null, null, null, 0.5],
      rtt: [40, null, null, 40],
      links: [2, null, null, 2],
      players: [1, null, null, 1],
    },
  })
  expect(toSeries([{ at: at(0), bitrate_kbps: 1 }])).toEqual({ startAt, bitrate: [1], others: {} })
  expect(toSeries([])).toBeUndefined()
})

test('a line has a point for each slot until there are more than are drawn', () => {
  const values = evening(drawnPointsMax)
  expect(reduceToLines(values, 0, values.length - 1)).toEqual([values.map((value, slot) => [slot, value])])
})

test('16 hours keep their lowest and highest values, in the order of their times', () => {
  const values = evening(5760)
  values[2001] = 9999
  values[2003] = 0
  values[4444] = 1
  const [line = [], ...rest] = reduceToLines(values, 0, values.length - 1)
  expect(rest).toEqual([])
  expect(line.length).toBeLessThanOrEqual(drawnPointsMax)
  for (const point of [
    [2001, 9999],
    [2003, 0],
    [4444, 1],
  ])
    expect(line).toContainEqual(point)
  const slots = line.map(([slot]) => slot)
  expect(slots).toEqual(slots.toSorted((a, b) => a - b))
})

test('two slots without a point interrupt a line, and a single one does not', () => {
  const values = [1, null, 2, null, null, 3, 4]
  const lines = [
    [
      [0, 1],
      [2, 2],
    ],
    [
      [5, 3],
      [6, 4],
    ],
  ]
  expect(reduceToLines(values, 0, 6)).toEqual(lines)
  expect(reduceToLines([null, null], 0, 1)).toEqual([])
})

test.each([
  ['an evening', evening(5760), 0, 5759],
  ['a part of it', evening(5760), 1000, 2999],
  ['gaps', evening(5000).map((value, slot) => (slot % 500 < 60 ? null : value)), 0, 4999],
  ['a few slots', [1, null, null, 5], 0, 3],
] as const)('the browser reduces %s to the same points', (_, values: Values, first, last) => {
  expect(reduceInBrowser(values, first, last)).toEqual(reduceToLines(values, first, last))
})

test('the peak is at the top, time goes from left to right, and a single point is as wide as its slot', () => {
  const size = { width: 100, height: 50 }
  const view = { from: startAt, to: startAt + 10 * slotMillis }
  expect(drawLines([0, 100, 50], startAt, view, 100, size)).toEqual(['0,50 10,0 20,25'])
  expect(drawLines([null, null, 100], startAt, view, 100, size)).toEqual(['20,0 30,0'])
})

test('16 hours are reduced and drawn in a fraction of the time that a page may take', () => {
  const values = evening(5760)
  const view = { from: startAt, to: startAt + 5760 * slotMillis }
  const begunAt = performance.now()
  drawLines(values, startAt, view, 4006, { width: 1200, height: 240 })
  expect(performance.now() - begunAt).toBeLessThan(100)
})
