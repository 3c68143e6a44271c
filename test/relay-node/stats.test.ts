/** The shares of links in a relay's statistics. */
import { expect, test } from 'vitest'
import { showGroup } from '../../relay-node/stats.ts'

const link = (addr: string, bytes: number, more: object = {}) => ({
  addr,
  bytes,
  pkts: 1,
  firstAt: 0,
  lastAt: 2_000,
  ...more,
})

test('shares refer to the bytes of the present links, and the total to those of all', () => {
  const links = [
    link('10.0.0.1:1000', 1_500, { pkts: 2, lastAt: 1_500 }),
    link('10.0.0.2:2000', 500, { firstAt: 2_000, lastAt: 2_000 }),
  ]

  expect(showGroup('srtla', 9_000, links, 3_500)).toEqual({
    id: 'srtla',
    conn_count: 2,
    total_bytes: 9_000,
    connections: [
      { addr: '10.0.0.1:1000', bytes: 1_500, pkts: 2, share_pct: 75, last_ms_ago: 2_000, uptime_s: 3 },
      { addr: '10.0.0.2:2000', bytes: 500, pkts: 1, share_pct: 25, last_ms_ago: 1_500, uptime_s: 1 },
    ],
  })
})

test('a link without bytes has a share of 0 percent', () => {
  expect(showGroup('srtla', 0, [link('a:1', 0)], 2_000).connections[0]?.share_pct).toBe(0)
})
