/** The copies of a stream for several players. */
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { StreamFanOut } from '../../relay-node/stream-fan-out.ts'

const block = 1316

function createPlayer() {
  const input = new PassThrough()
  const chunks: Buffer[] = []
  input.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { input, onTooSlow: () => {}, received: () => Buffer.concat(chunks) }
}

test('every player receives the stream whole, in whole blocks, from the block after it was added', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(sizes, fc.nat(29), async (lengths, addedAt) => {
      const fanOut = new StreamFanOut()
      const [early, late] = [createPlayer(), createPlayer()]
      fanOut.add(early)
      const stream: Buffer[] = []
      let lateFrom = 0
      for (const [index, length] of lengths.entries()) {
        if (index === addedAt) {
          lateFrom = Math.floor(Buffer.concat(stream).length / block) * block
          fanOut.add(late)
        }
        const chunk = Buffer.alloc(length, index + 1)
        stream.push(chunk)
        fanOut.write(chunk)
        await new Promise(setImmediate)
        expect(early.received().length % block).toBe(0)
      }
      fanOut.flush()
      await new Promise(setImmediate)
      const whole = Buffer.concat(stream)
      expect(early.received().equals(whole)).toBe(true)
      if (addedAt < lengths.length) expect(late.received().equals(whole.subarray(lateFrom))).toBe(true)
    }),
    { numRuns: 50 },
  )
})

test('a player that does not keep up is closed, and the others go on', async () => {
  const fanOut = new StreamFanOut({ pendingBytesMax: 10 * block })
  const onTooSlow = vi.fn()
  const slow = { input: new PassThrough({ highWaterMark: 1 }), onTooSlow }
  const fast = createPlayer()
  fanOut.add(slow)
  fanOut.add(fast)

  for (let n = 0; n < 100; n += 1) {
    fanOut.write(Buffer.alloc(block, n))
    await new Promise(setImmediate)
  }

  expect(onTooSlow).toHaveBeenCalledOnce()
  expect(slow.input.writableLength).toBeLessThan(20 * block)
  expect(fast.received()).toHaveLength(100 * block)
})

test('a removed player receives nothing more', async () => {
  const fanOut = new StreamFanOut()
  const player = createPlayer()
  fanOut.add(player)
  fanOut.remove(player)
  fanOut.write(Buffer.alloc(block))
  await new Promise(setImmediate)
  expect(player.received()).toHaveLength(0)
})

test('what a publisher sent before it vanished reaches the players of that time only', async () => {
  const fanOut = new StreamFanOut()
  const [early, late] = [createPlayer(), createPlayer()]
  fanOut.add(early)
  const ofEarly = fanOut.newest
  fanOut.write(Buffer.alloc(block, 1), ofEarly)

  fanOut.add(late)
  fanOut.write(Buffer.alloc(block, 2), ofEarly)
  fanOut.write(Buffer.alloc(block, 3), fanOut.newest)

  await new Promise(setImmediate)
  const blocks = [1, 2, 3].map((n) => Buffer.alloc(block, n))
  expect(early.received().equals(Buffer.concat(blocks))).toBe(true)
  expect(late.received().equals(Buffer.alloc(block, 3))).toBe(true)
})

test('a player that has begun gets all that follows', async () => {
  const fanOut = new StreamFanOut()
  const former = fanOut.newest
  const player = createPlayer()
  fanOut.add(player)
  fanOut.write(Buffer.alloc(block, 1), former)
  fanOut.write(Buffer.alloc(block, 2))
  fanOut.write(Buffer.alloc(block, 3), former)

  await new Promise(setImmediate)
  const blocks = [2, 3].map((n) => Buffer.alloc(block, n))
  expect(player.received().equals(Buffer.concat(blocks))).toBe(true)
})
