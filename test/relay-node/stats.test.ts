/** The shares of links in a relay's statistics. */
import { expect, test } from 'vitest'
import { showBonding, showGroup } from '../../relay-node/stats.ts'

const link = (addr: string, bytes: number, more: object = {}) => ({
  id: `link ${addr}`,
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

  expect(
    showGroup({ id: 'srtla', totalBytes: 9_000, links, latencyMillis: 120, areAddressesShown: true }, 3_500),
  ).toEqual({
    id: 'srtla',
    conn_count: 2,
    total_bytes: 9_000,
    connections: [
      {
        id: 'link 10.0.0.1:1000',
        addr: '10.0.0.1:1000',
        bytes: 1_500,
        pkts: 2,
        share_pct: 75,
        last_ms_ago: 2_000,
        uptime_s: 3,
      },
      {
        id: 'link 10.0.0.2:2000',
        addr: '10.0.0.2:2000',
        bytes: 500,
        pkts: 1,
        share_pct: 25,
        last_ms_ago: 1_500,
        uptime_s: 1,
      },
    ],
  })
})

test('addresses are masked unless the relay is set to show them', () => {
  const links = [link('198.51.100.7:5000', 1), link('[2001:db8:7::7]:5001', 1)]
  const addressesOf = (areAddressesShown: boolean) =>
    showGroup({ id: 'srtla', totalBytes: 2, links, latencyMillis: 120, areAddressesShown }, 2_000).connections.map(
      ({ addr }) => addr,
    )
  expect(addressesOf(false)).toEqual(['198.51.0.0:5000', '[2001:db8::]:5001'])
  expect(addressesOf(true)).toEqual(['198.51.100.7:5000', '[2001:db8:7::7]:5001'])
})

test('a link without bytes has a share of 0 percent', () => {
  expect(
    showGroup(
      { id: 'srtla', totalBytes: 0, links: [link('a:1', 0)], latencyMillis: 120, areAddressesShown: true },
      2_000,
    ).connections[0]?.share_pct,
  ).toBe(0)
})

test('a link with measures has them in whole numbers, and a verdict', () => {
  const reading = { packets: 500, late: 0.301, lateMillis: 900.4, gapMillisMax: 210.2, lost: 0.1234, rttMillis: 45 }
  const well = { ...reading, lateMillis: 0, lost: undefined, rttMillis: undefined }
  const links = [link('a:1', 10, { reading }), link('a:2', 10, { reading: well })]
  const group = showGroup({ id: 'srtla', totalBytes: 20, links, latencyMillis: 2_000, areAddressesShown: true }, 2_000)
  expect(group.connections).toMatchObject([
    { gap_ms_max: 210, late_pct: 30.1, late_ms: 900, repeat_pct: 12.3, rtt_ms: 45, verdict: 'weak', reason: 'lossy' },
    { gap_ms_max: 210, late_ms: 0, verdict: 'good' },
  ])
  expect(group.connections[1]).not.toHaveProperty('repeat_pct')
  expect(group.connections[1]).not.toHaveProperty('reason')
})

test('what was done about late packets is shown', () => {
  expect(showBonding({ held: 9, reported: 2, saved: 7, latenessMillis: 130.6 })).toEqual({
    held: 9,
    reported: 2,
    saved: 7,
    lateness_ms: 131,
  })
})
