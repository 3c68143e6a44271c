/** The batches of concurrent calls: their size, number and failures. */
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { batch } from '../../platform/batch.ts'

/** Doubles each item, and records the batches. A batch with the item -1 fails. */
function doubling(millis = 1) {
  const batches: number[][] = []
  let running = 0
  let runningMost = 0
  const run = async (items: number[]) => {
    batches.push(items)
    running += 1
    runningMost = Math.max(runningMost, running)
    await sleep(millis)
    running -= 1
    if (items.includes(-1)) throw new Error('a failed batch')
    return items.map((item) => item * 2)
  }
  return { run, batches, most: () => runningMost }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

test('items of one turn of the event loop are one batch, each with its own result', async () => {
  const { run, batches } = doubling()
  const batched = batch(run)
  expect(await Promise.all([3, 1, 3, 2].map(batched))).toEqual([6, 2, 6, 4])
  expect(batches).toEqual([[3, 1, 3, 2]])
})

test('a single item does not wait for others', async () => {
  const { run, batches } = doubling()
  const batched = batch(run)
  expect(await batched(1)).toBe(2)
  expect(await batched(2)).toBe(4)
  expect(batches).toEqual([[1], [2]])
})

test('the size and the number of concurrent batches are limited', async () => {
  const { run, batches, most } = doubling(2)
  const batched = batch(run, { sizeMax: 10, concurrencyMax: 3 })
  expect(await Promise.all(upTo(95).map(batched))).toEqual(upTo(95).map((item) => item * 2))
  expect(batches.map((round) => round.length)).toEqual([...Array(9).fill(10), 5])
  expect(most()).toBe(3)
})

test('a failed batch rejects only its own items', async () => {
  const { run } = doubling()
  const batched = batch(run, { sizeMax: 2, concurrencyMax: 1 })
  const outcomes = await Promise.allSettled([1, 2, -1, 3, 4].map(batched))
  expect(outcomes.map((outcome) => outcome.status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
  ])
  expect(await batched(5)).toBe(10)
})

test('an item that has waited too long is rejected after a failed batch, and a new one is processed', async () => {
  const { run, batches } = doubling()
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const runHeld = async (items: number[]) => {
    if (items.includes(-1)) await held
    return run(items)
  }
  const batched = batch(runHeld, { sizeMax: 1, concurrencyMax: 1, waitMillisMax: 50 })
  const [failing, early] = [batched(-1), batched(1)]
  await sleep(60)
  release()
  const [failed, late, inTime] = await Promise.allSettled([failing, early, batched(2)])
  expect(failed.status).toBe('rejected')
  expect(late).toMatchObject({
    status: 'rejected',
    reason: { code: 'QUERY_TIMEOUT', cause: new Error('a failed batch') },
  })
  expect(inTime).toEqual({ status: 'fulfilled', value: 4 })
  expect(batches).toEqual([[-1], [2]])
})

test('an item that has waited long is processed after a successful batch', async () => {
  const { run } = doubling(60)
  const batched = batch(run, { sizeMax: 1, concurrencyMax: 1, waitMillisMax: 30 })
  expect(await Promise.all([batched(1), batched(2), batched(3)])).toEqual([2, 4, 6])
})

test('a function that throws synchronously is a failed batch', async () => {
  const batched = batch((): Promise<number[]> => {
    throw new Error('thrown synchronously')
  })
  await expect(batched(1)).rejects.toThrow('thrown synchronously')
  await expect(batched(2)).rejects.toThrow('thrown synchronously')
})

test('every item gets its own result for any times of arrival', async () => {
  const anyArrival = fc.record({ item: fc.nat(1000), after: fc.nat(4) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyArrival, { maxLength: 40 }),
      fc.record({ sizeMax: fc.integer({ min: 1, max: 7 }), concurrencyMax: fc.integer({ min: 1, max: 3 }) }),
      async (arrivals, limits) => {
        const { run, batches, most } = doubling()
        const batched = batch(run, limits)
        const results = await Promise.all(
          arrivals.map(async ({ item, after }) => {
            await sleep(after)
            return batched(item)
          }),
        )
        expect(results).toEqual(arrivals.map(({ item }) => item * 2))
        expect(Math.max(0, ...batches.map((items) => items.length))).toBeLessThanOrEqual(limits.sizeMax)
        expect(most()).toBeLessThanOrEqual(limits.concurrencyMax)
      },
    ),
    { numRuns: 40 },
  )
})
