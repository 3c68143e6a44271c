/** The texts of times and durations. */
import { expect, test } from 'vitest'
import {
  formatAge,
  formatClock,
  formatCountdown,
  formatDateTime,
  formatDay,
  formatHours,
  formatInstant,
  formatTimeLeft,
} from '../../web/time-text.tsx'

test('an age is formatted in its largest whole unit', () => {
  const now = new Date('2026-11-21T12:00:00Z')
  const secondsAgo = (seconds: number) => formatAge(new Date(now.getTime() - seconds * 1000), now)
  expect([-5, 59, 60, 3599, 3600, 86_399, 86_400, 12 * 86_400].map(secondsAgo)).toEqual([
    'just now',
    'just now',
    '1 minute ago',
    '59 minutes ago',
    '1 hour ago',
    '23 hours ago',
    '1 day ago',
    '12 days ago',
  ])
})

test('a duration is formatted in minutes, then hours and minutes, then hours', () => {
  expect([0, 59, 60, 3599, 3600, 34_200, 35_999, 36_000, 720_000].map(formatHours)).toEqual([
    '0 min',
    '0 min',
    '1 min',
    '59 min',
    '1 h',
    '9 h 30 min',
    '9 h 59 min',
    '10 h',
    '200 h',
  ])
})

test('a countdown is formatted in whole seconds, and not below zero', () => {
  expect([105, 9.2, 0, -3].map(formatCountdown)).toEqual(['1:45', '0:10', '0:00', '0:00'])
})

test('the time left is in minutes within the last hour, and in seconds within the last minute', () => {
  expect([172_740, 3599.5, 754, 59.4, 29, 1, 0].map(formatTimeLeft)).toEqual([
    '47 h 59 min',
    '1 h 0 min',
    '12:34 minutes',
    '1:00 minutes',
    '29 seconds',
    '1 second',
    '0 seconds',
  ])
})

test('a day is that in UTC, and says so', () => {
  expect(formatDay(new Date('2026-12-03T23:05:00Z'))).toBe('3 December 2026 (UTC)')
})

test('a date and time is formatted in UTC', () => {
  expect(formatDateTime(new Date('2026-12-03T23:05:00Z'))).toBe('3 Dec 2026, 23:05 UTC')
})

test('an instant is formatted in UTC to the second', () => {
  expect(formatInstant(new Date('2026-12-03T23:05:09.500Z'))).toBe('3 Dec 2026, 23:05:09 UTC')
})

test('a time of today is formatted without its day', () => {
  const now = new Date('2026-12-03T23:30:00Z')
  expect(formatClock(new Date('2026-12-03T23:05:00Z'), now)).toBe('23:05 UTC')
  expect(formatClock(new Date('2026-12-04T00:05:00Z'), now)).toBe('4 Dec 2026, 00:05 UTC')
})
