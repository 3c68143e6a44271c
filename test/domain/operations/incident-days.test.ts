/** The last days of the status page. */
import { expect, test } from 'vitest'
import { listIncidentDays } from '../../../domain/operations/incident-days.ts'

const at = (text: string) => Date.parse(text)
const now = at('2026-12-03T10:00:00Z')
const levelsOf = (incidents: Parameters<typeof listIncidentDays>[0], measuredSince = 0) =>
  listIncidentDays(incidents, { now, measuredSince })
const daysWith = (days: ReturnType<typeof levelsOf>, level: string) =>
  days.filter((each) => each.level === level).map(({ day }) => day)

test('there are ninety days, the last of which is today', () => {
  const days = levelsOf([])
  expect([days.length, days[0]?.day, days.at(-1)?.day]).toEqual([90, '2026-09-05', '2026-12-03'])
  expect(daysWith(days, 'fine')).toHaveLength(90)
})

test('an incident marks each day that it touches, an open one until today', () => {
  const past = { beganAt: at('2026-11-28T23:59:00Z'), endedAt: at('2026-11-30T00:00:00Z') }
  const open = { beganAt: at('2026-12-02T12:00:00Z'), endedAt: null }
  const marked = ['2026-11-28', '2026-11-29', '2026-11-30', '2026-12-02', '2026-12-03']
  expect(daysWith(levelsOf([past, open]), 'incident')).toEqual(marked)
})

test('days before the service began to measure are unknown, unless an operator reported an incident', () => {
  const days = levelsOf([{ beganAt: at('2026-10-01T01:00:00Z'), endedAt: at('2026-10-01T02:00:00Z') }], now - 3_600_000)
  expect(daysWith(days, 'unmeasured')).toHaveLength(88)
  expect([daysWith(days, 'incident'), daysWith(days, 'fine')]).toEqual([['2026-10-01'], ['2026-12-03']])
})
