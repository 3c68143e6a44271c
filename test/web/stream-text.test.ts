/** The texts of bitrates and amounts of data. */
import { expect, test } from 'vitest'
import { formatBitrate, formatBytes } from '../../web/stream-text.ts'

test('a bitrate is formatted in kbps, and from 1000 on in Mbps', () => {
  expect([0, 640, 999, 1000, 5240, 48_000].map(formatBitrate)).toEqual([
    '0 kbps',
    '640 kbps',
    '999 kbps',
    '1.0 Mbps',
    '5.2 Mbps',
    '48.0 Mbps',
  ])
})

test('an amount of data is formatted in its largest unit', () => {
  expect([0, 999, 1500, 2.5e6, 3.44e9, 1.2e12].map(formatBytes)).toEqual([
    '0 bytes',
    '999 bytes',
    '1.5 kB',
    '2.5 MB',
    '3.4 GB',
    '1.2 TB',
  ])
})
