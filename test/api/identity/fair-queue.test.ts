/** The queue that shares slots among clients, whatever each of them asks for. */
import { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFairQueue, NotStartedError, type NotStartedReason } from '../../../api/identity/fair-queue.ts'

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

/** Longer than the tests. */
const waitSecondsMax = 60

const client = (name: string, connection = new Socket()) => ({ name, connection })

const reasonOf = (task: Promise<unknown>): Promise<NotStartedReason | undefined> =>
  task.then(
    () => undefined,
    (error: unknown) => (error instanceof NotStartedError ? error.reason : undefined),
  )

const settled = (tasks: readonly Promise<unknown>[]) => Promise.allSettled(tasks)
const isDone = (result: PromiseSettledResult<unknown>) => result.status === 'fulfilled'

describe('a fair queue', () => {
  test('serves clients round robin, regardless of how many tasks each has', async () => {
    const { started, work, endAll } = createWork()
    const queue = createFairQueue({ runningMax: 1, waitingMax: 20, waitSecondsMax })
    const tasks = ['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'c0'].map((name) =>
      queue.run(client(name.slice(0, 1)), work(name)),
    )
    await endAll()
    expect(started).toEqual(['a0', 'a1', 'b0', 'c0', 'a2', 'b1', 'a3'])
    expect((await settled(tasks)).every(isDone)).toBe(true)
  })

  test('continues after a task that fails synchronously or asynchronously', async () => {
    const queue = createFairQueue({ runningMax: 1, waitingMax: 5, waitSecondsMax })
    const results = await settled([
      queue.run(client('a'), () => Promise.reject(new Error('later'))),
      queue.run(client('a'), () => {
        throw new Error('at once')
      }),
      queue.run(client('a'), async () => 'done'),
    ])
    expect(results.map(isDone)).toEqual([false, false, true])
  })

  test('removes a waiting task whose connection closes, and gives its place to another', async () => {
    const { started, work, endAll } = createWork()
    const queue = createFairQueue({ runningMax: 1, waitingMax: 2, waitSecondsMax })
    const connection = new Socket()
    const first = queue.run(client('a'), work('a0'))
    const abandoned = queue.run(client('a', connection), work('a1'))
    const second = queue.run(client('a'), work('a2'))
    expect(await reasonOf(queue.run(client('a'), work('a3')))).toBe('queue_full')
    connection.destroy()
    expect(await reasonOf(abandoned)).toBe('connection_closed')
    const third = queue.run(client('a'), work('a4'))
    await endAll()
    expect(await Promise.all([first, second, third])).toEqual(['a0', 'a2', 'a4'])
    expect(started).toEqual(['a0', 'a2', 'a4'])
  })

  test('completes a running task whose connection closes, and starts none whose connection is closed', async () => {
    const { started, work, endAll } = createWork()
    const queue = createFairQueue({ runningMax: 1, waitingMax: 2, waitSecondsMax })
    const connection = new Socket()
    const listeners = connection.listenerCount('close')
    const running = queue.run(client('a', connection), work('a0'))
    expect(connection.listenerCount('close')).toBe(listeners)
    connection.destroy()
    expect(await reasonOf(queue.run(client('a', connection), work('a1')))).toBe('connection_closed')
    await endAll()
    expect(await running).toBe('a0')
    expect(started).toEqual(['a0'])
  })

  test('rejects a task that has waited too long, and its connection may close later', async () => {
    const { started, work, endAll } = createWork()
    const queue = createFairQueue({ runningMax: 1, waitingMax: 2, waitSecondsMax: 0.05 })
    const connection = new Socket()
    const listeners = connection.listenerCount('close')
    const running = queue.run(client('a'), work('a0'))
    expect(await reasonOf(queue.run(client('b', connection), work('b0')))).toBe('waited_too_long')
    expect(connection.listenerCount('close')).toBe(listeners)
    const next = queue.run(client('b', connection), work('b1'))
    await endAll()
    expect(await Promise.all([running, next])).toEqual(['a0', 'b1'])
    expect(started).toEqual(['a0', 'b1'])
  })

  test('starts exactly the tasks whose connections stay open, those of each client in their order', async () => {
    const task = fc.record({ name: fc.constantFrom('a', 'a', 'b', 'c'), closes: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(task, { maxLength: 30 }), fc.integer({ min: 1, max: 3 }), async (given, runningMax) => {
        const { started, work, endAll } = createWork()
        const queue = createFairQueue({ runningMax, waitingMax: 30, waitSecondsMax })
        const first = Array.from({ length: runningMax }, () => queue.run(client('z'), work('z')))
        const tasks = given.map(({ name, closes }, index) => {
          const connection = new Socket()
          return {
            name,
            closes,
            connection,
            label: `${name}${index}`,
            result: queue.run(client(name, connection), work(`${name}${index}`)),
          }
        })
        const reasons = Promise.all(tasks.map(({ result }) => reasonOf(result)))
        for (const { closes, connection } of tasks) if (closes) connection.destroy()
        await new Promise(setImmediate)
        await endAll()
        expect(await reasons).toEqual(given.map(({ closes }) => (closes ? 'connection_closed' : undefined)))
        const open = tasks.filter(({ closes }) => !closes)
        for (const name of ['a', 'b', 'c'])
          expect(started.filter((label) => label.startsWith(name))).toEqual(
            open.filter((opened) => opened.name === name).map(({ label }) => label),
          )
        expect(await settled(first)).toHaveLength(runningMax)
      }),
    )
  })

  test('keeps its limits, settles every task, and never rejects the client with the fewest tasks', async () => {
    const party = fc.constantFrom('a', 'a', 'a', 'a', 'b', 'c', 'd')
    await fc.assert(
      fc.asyncProperty(
        fc.array(party, { maxLength: 60 }),
        fc.record({ runningMax: fc.integer({ min: 1, max: 3 }), waitingMax: fc.integer({ min: 1, max: 12 }) }),
        async (parties, bounds) => {
          const { work, endAll } = createWork()
          const queue = createFairQueue({ ...bounds, waitSecondsMax })
          const tasks = parties.map((name, index) => queue.run(client(name), work(`${name}${index}`)))
          const outcome = settled(tasks)
          await endAll()
          const results = await outcome
          const done = results.filter(isDone)
          expect(done).toHaveLength(Math.min(parties.length, bounds.runningMax + bounds.waitingMax))
          for (const result of results)
            if (result.status === 'rejected')
              expect(result.reason).toMatchObject({ name: 'NotStartedError', reason: 'queue_full' })
          // Behind those that ran at once, a refused party had no fewer places than any other, give or take one.
          const waited = results.slice(bounds.runningMax)
          const placesOf = (name: string) =>
            waited.filter((task, index) => isDone(task) && parties[index + bounds.runningMax] === name).length
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
