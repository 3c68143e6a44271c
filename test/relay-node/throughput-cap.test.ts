/** The soft cap on throughput. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ThroughputCap } from '../../relay-node/throughput-cap.ts'

function givenCap(mbps: number) {
  let now = 0
  const cap = new ThroughputCap(mbps, () => now)
  onTestFinished(() => cap.close())
  /** The places of the delivered datagrams in the order of the calls. */
  const delivered: number[] = []
  let pushed = 0
  const push = (count: number, bytes = 1_316) => {
    for (let n = 0; n < count; n += 1) {
      pushed += 1
      const place = pushed
      cap.push(bytes, () => delivered.push(place))
    }
  }
  /** Lets the time pass until so many datagrams are delivered. @returns the milliseconds. */
  const passUntil = async (count: number): Promise<number> => {
    const startedAt = now
    while (delivered.length < count) {
      now += 5
      // Fires after the timer of the cap, which was set before with the same duration.
      await sleep(1)
    }
    return now - startedAt
  }
  return { push, delivered, passUntil }
}

test('below the cap every datagram passes at once', () => {
  const { push, delivered } = givenCap(48)
  push(100)
  expect(delivered).toHaveLength(100)
})

test('above the cap datagrams are delayed to its rate, and arrive in order and complete', async () => {
  const { push, delivered, passUntil } = givenCap(8)
  // A burst of a quarter of a second passes; the rest takes half a second.
  push(570)
  expect(delivered).toHaveLength(189)

  const millis = await passUntil(570)

  expect(millis).toBeGreaterThan(490)
  expect(millis).toBeLessThan(510)
  expect(delivered).toEqual(Array.from({ length: 570 }, (_, n) => n + 1))
})

test('a small datagram does not overtake a delayed one', async () => {
  const { push, delivered, passUntil } = givenCap(1)
  push(30)
  push(1, 1)
  await passUntil(31)
  expect(delivered).toEqual([...delivered].sort((a, b) => a - b))
  expect(delivered.at(-1)).toBe(31)
})

test('forged traffic cannot fill the memory', async () => {
  const { push, delivered } = givenCap(0.1)
  push(100_000)
  expect(delivered.length).toBeLessThan(10)
  const before = process.memoryUsage().heapUsed
  push(100_000)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(30_000_000)
})
