/** What is usual for a publisher. */
import { expect, test } from 'vitest'
import { UsualStream } from '../../relay-node/usual-stream.ts'

function sample(usual: UsualStream, kbps: number, links: number, from: number, until: number) {
  for (let at = from; at < until; at += 500) usual.sample(kbps, links, at)
}

test('nothing is usual in the first seconds of a stream', () => {
  const usual = new UsualStream()
  sample(usual, 5_000, 3, 0, 4_500)
  expect(usual).toMatchObject({ bitrateKbps: undefined, links: 0 })
})

test('a bitrate that collapses stays unusual for a minute and a half, and is the usual one later', () => {
  const usual = new UsualStream()
  sample(usual, 5_000, 3, 0, 60_000)
  expect(usual.bitrateKbps).toBe(5_000)
  sample(usual, 600, 3, 60_000, 150_000)
  expect(usual.bitrateKbps).toBeGreaterThan(1_500)
  sample(usual, 600, 3, 150_000, 600_000)
  expect(usual.bitrateKbps).toBeLessThan(700)
})

test('a link that is gone is expected for five minutes', () => {
  const usual = new UsualStream()
  sample(usual, 5_000, 3, 0, 20_000)
  sample(usual, 5_000, 2, 20_000, 310_000)
  expect(usual.links).toBe(3)
  sample(usual, 5_000, 2, 310_000, 330_000)
  expect(usual.links).toBe(2)
})

test('a link that changes its port does not count as two', () => {
  const usual = new UsualStream()
  sample(usual, 5_000, 3, 0, 20_000)
  sample(usual, 5_000, 4, 20_000, 23_000)
  sample(usual, 5_000, 3, 23_000, 30_000)
  expect(usual.links).toBe(3)
})
