import { expect, test } from 'vitest'
import { Stats } from '../../relay-node/stats.ts'

test('a relay that receives nothing has no groups', () => {
  expect(new Stats().show(5_000)).toEqual({ ts: 5_000, groups: [] })
})

test('links to the same port share a group, and their shares refer to its bytes', () => {
  const stats = new Stats()
  stats.count('srtla', '10.0.0.1:1000', 1_000, 0)
  stats.count('srtla', '10.0.0.1:1000', 500, 1_500)
  stats.count('srtla', '10.0.0.2:2000', 500, 2_000)
  stats.count('publish', '10.0.0.3:3000', 7, 2_000)

  expect(stats.show(3_500).groups).toEqual([
    {
      id: 'srtla',
      conn_count: 2,
      total_bytes: 2_000,
      connections: [
        { addr: '10.0.0.1:1000', bytes: 1_500, pkts: 2, share_pct: 75, last_ms_ago: 2_000, uptime_s: 3 },
        { addr: '10.0.0.2:2000', bytes: 500, pkts: 1, share_pct: 25, last_ms_ago: 1_500, uptime_s: 1 },
      ],
    },
    {
      id: 'publish',
      conn_count: 1,
      total_bytes: 7,
      connections: [{ addr: '10.0.0.3:3000', bytes: 7, pkts: 1, share_pct: 100, last_ms_ago: 1_500, uptime_s: 1 }],
    },
  ])
})

test('a link that is idle for too long is removed, and the total of its group does not decrease', () => {
  const stats = new Stats({ idleMillisMax: 60_000, linksMax: 64 })
  stats.count('srtla', 'a:1', 100, 0)
  stats.count('srtla', 'b:1', 10, 50_000)

  const [group] = stats.show(60_001).groups

  expect(group).toMatchObject({ conn_count: 1, total_bytes: 110, connections: [{ addr: 'b:1', share_pct: 100 }] })
})

test('a group without links is removed, and starts again at 0', () => {
  const stats = new Stats({ idleMillisMax: 1_000, linksMax: 64 })
  stats.count('srtla', 'a:1', 100, 0)
  expect(stats.show(1_001).groups).toEqual([])

  stats.count('srtla', 'a:1', 5, 2_000)

  expect(stats.show(2_000).groups).toMatchObject([{ total_bytes: 5, connections: [{ uptime_s: 0 }] }])
})

test('forged addresses neither grow the number of links without limit nor remove a link that sends', () => {
  const stats = new Stats({ idleMillisMax: 60_000, linksMax: 8 })
  for (let n = 0; n < 10_000; n += 1) {
    stats.count('srtla', 'phone:1', 1_316, n)
    stats.count('srtla', `forged:${n}`, 1, n)
  }

  const [group] = stats.show(10_000).groups

  expect(group?.conn_count).toBe(8)
  expect(group?.connections.find((link) => link.addr === 'phone:1')).toMatchObject({ pkts: 10_000 })
})

test('empty datagrams have a share of 0 percent', () => {
  const stats = new Stats()
  stats.count('srtla', 'a:1', 0, 0)
  expect(stats.show(0).groups[0]?.connections[0]?.share_pct).toBe(0)
})
