/** The moments that addresses of a session's page name. */
import { expect, test } from 'vitest'
import {
  findNearest,
  formatDistance,
  parseClock,
  parseInstant,
  viewAround,
} from '../../../web/charts/evening-moment.ts'

const range = { from: Date.parse('2026-11-28T18:00:00Z'), to: Date.parse('2026-11-28T22:00:00Z') }
const at = Date.parse('2026-11-28T21:14:05Z')

test.each(['2026-11-28T21:14:05Z', '2026-11-28T22:14:05+01:00', '2026-11-28T21:14:05.000Z'])(
  'the time %s is a moment of the session',
  (text) => {
    expect(parseInstant(text, range)).toBe(at)
    expect(parseClock(text)).toBeUndefined()
  },
)

test.each([
  null,
  '',
  '21:14',
  'now',
  '2026-11-28',
  '2026-11-28T21:14:05',
  '2026-11-28T23:00:00Z',
  '2026-13-28T21:00:00Z',
])('%s is no moment of the session', (text) => expect(parseInstant(text, range)).toBeUndefined())

test.each([
  ['21:14', '21:14'],
  ['9:05:59', '9:05:59'],
  ['24:00', undefined],
  ['21:60', undefined],
  ['21', undefined],
  ['<b>', undefined],
  [null, undefined],
])('the time of day %s is read as %s', (text, clock) => expect(parseClock(text)).toBe(clock))

test('ten minutes before and after a moment are shown, within the session', () => {
  expect(viewAround(at, range)).toEqual({ from: at - 600_000, to: at + 600_000 })
  expect(viewAround(range.from + 1000, range)).toEqual({ from: range.from, to: range.from + 601_000 })
})

test('the three nearest events within ten minutes are named, in their order', () => {
  const events = [-700, -500, -20, 3, 90].map((seconds) => ({
    event: { kind: 'stream_lost' as const, at: '', bitrate_kbps: 0 },
    at: new Date(at + seconds * 1000).toISOString(),
    text: `${seconds}`,
    tone: undefined,
    publicReason: undefined,
  }))
  expect(findNearest(events, at).map(({ text }) => text)).toEqual(['-20', '3', '90'])
  expect(findNearest(events.slice(0, 1), at)).toEqual([])
})

test.each([
  [0, 'at this moment'],
  [-12, '12 s earlier'],
  [125, '2 min 5 s later'],
  [-120, '2 min earlier'],
])('an event %i s away is %s', (seconds, text) => expect(formatDistance(at + seconds * 1000, at)).toBe(text))
