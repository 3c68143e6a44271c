import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFairQueue, QueueFullError } from '../../../api/identity/fair-queue.ts'

/** Work that ends when the test says so. */
function createWork() {
  const started: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string) => () =>
    new Promise<string>((resolve) => {
      started.push(name)
      ends.push(() => resolve(name))
    })
  /** Ends whatever runs, and what starts then, until nothing does. */
  const endAll = async () => {
    for (let end = ends.shift(); end; end = ends.shift()) {
      end()
      await new Promise(setImmediate)
    }
  }
  return { started, work, endAll }
}

const settled = (tasks: readonly Promise<unknown>[]) => Promise.allSettled(tasks)
const isDone = (result: PromiseSettledResult<unknown>) => result.status === 'fulfilled'

describe('a fair queue', () => {
  test('serves clients round robin, regardless of how many tasks each has', async () => {
    const { started, work, endAll } = createWork()
    const queue = createFairQueue({ runningMax: 1, waitingMax: 20 })
    const tasks = ['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'c0'].map((name) => queue.run(name.slice(0, 1), work(name)))
    await endAll()
    expect(started).toEqual(['a0', 'a1', 'b0', 'c0', 'a2', 'b1', 'a3'])
    expect((await settled(tasks)).every(isDone)).toBe(true)
  })

  test('continues after a task that fails synchronously or asynchronously', async () => {
    const queue = createFairQueue({ runningMax: 1, waitingMax: 5 })
    const results = await settled([
      queue.run('a', () => Promise.reject(new Error('later'))),
      queue.run('a', () => {
        throw new Error('at once')
      }),
      queue.run('a', async () => 'done'),
    ])
    expect(results.map(isDone)).toEqual([false, false, true])
  })

  test('keeps its limits, settles every task, and never rejects the client with the fewest tasks', async () => {
    const party = fc.constantFrom('a', 'a', 'a', 'a', 'b', 'c', 'd')
    await fc.assert(
      fc.asyncProperty(
        fc.array(party, { maxLength: 60 }),
        fc.record({ runningMax: fc.integer({ min: 1, max: 3 }), waitingMax: fc.integer({ min: 1, max: 12 }) }),
        async (parties, bounds) => {
          const { work, endAll } = createWork()
          const queue = createFairQueue(bounds)
          const tasks = parties.map((one, index) => queue.run(one, work(`${one}${index}`)))
          const outcome = settled(tasks)
          await endAll()
          const results = await outcome
          const done = results.filter(isDone)
          expect(done).toHaveLength(Math.min(parties.length, bounds.runningMax + bounds.waitingMax))
          for (const result of results)
            if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(QueueFullError)
          // Behind those that ran at once, a refused party had no fewer places than any other, give or take one.
          const waited = results.slice(bounds.runningMax)
          const placesOf = (name: string) =>
            waited.filter((one, index) => isDone(one) && parties[index + bounds.runningMax] === name).length
          for (const [index, result] of waited.entries()) {
            if (isDone(result)) continue
            const own = placesOf(parties[index + bounds.runningMax] ?? '')
            for (const other of new Set(parties)) expect(own).toBeGreaterThanOrEqual(placesOf(other) - 1)
          }
        },
      ),
    )
  })
})
