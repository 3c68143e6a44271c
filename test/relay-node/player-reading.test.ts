/** Whether a player reads, by the room that its acknowledgements state. */
import { expect, test } from 'vitest'
import { PlayerReading } from '../../relay-node/player-reading.ts'

const latencyMillis = 1_000
const packetsPerSecond = 250

/** A player that gets 250 packets a second until `until`. @param read the part of them that its program reads. */
function play(read: number, { from = latencyMillis, until = 10_000, room = 8_192 } = {}) {
  const reading = new PlayerReading(0)
  let [next, left] = [2 ** 31 - 500, room]
  for (let at = from; at <= until; at += 10) {
    next = (next + packetsPerSecond / 100) % 2 ** 31
    left -= (packetsPerSecond / 100) * (1 - read)
    reading.acknowledge(Math.floor(next), Math.max(0, Math.floor(left)), at)
  }
  return reading
}

test('a player that reads everything reads', () => {
  expect(play(1).isStalled(latencyMillis, 10_000, 10_000)).toBe(false)
})

test('a player that reads nothing is stalled after three seconds', () => {
  expect(play(0, { until: 3_500 }).isStalled(latencyMillis, 3_500, 3_500)).toBe(false)
  expect(play(0, { until: 4_600 }).isStalled(latencyMillis, 4_600, 4_600)).toBe(true)
})

test('a player whose buffer is full is stalled, although its room does not shrink any more', () => {
  expect(play(0, { room: 500, until: 20_000 }).isStalled(latencyMillis, 20_000, 20_000)).toBe(true)
})

test('the buffer of a new player may fill for the time of its latency', () => {
  expect(play(0, { from: 0, until: 4_000 }).isStalled(4_000, 4_000, 4_000)).toBe(false)
})

test('a player whose program has stopped says nothing at all', () => {
  expect(play(1).isStalled(latencyMillis, 10_000, 12_100)).toBe(false)
  expect(play(1).isStalled(latencyMillis, 10_000, 12_300)).toBe(true)
})

test('a player is not stalled while nothing is sent to it', () => {
  const reading = play(1)
  for (let at = 10_000; at < 15_000; at += 10) reading.acknowledge(10_000, 8_192, at)
  expect(reading.isStalled(latencyMillis, 15_000, 15_000)).toBe(false)
})
