/** The resources of a process, and how they are stopped. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'

function begin(stopMillisMax?: number) {
  const logged: { resource?: string; msg: string }[] = []
  const log = createLog('test', 'info', { write: (line) => void logged.push(JSON.parse(line)) })
  const life = new Lifecycle(log, stopMillisMax)
  const stopped: string[] = []
  const hold = (name: string, stop: () => unknown = () => {}) =>
    life.hold(name, name, async (value) => {
      await stop()
      stopped.push(value)
    })
  return { life, hold, stopped, logged }
}

test('resources are stopped one after the other in reverse order', async () => {
  const { life, hold, stopped } = begin()
  expect(hold('database')).toBe('database')
  hold('worker', () => sleep(20))
  hold('listener', () => sleep(10))
  await life.stop()
  expect(stopped).toEqual(['listener', 'worker', 'database'])
})

test('a resource that fails to stop is logged, and the others are stopped', async () => {
  const { life, hold, stopped, logged } = begin()
  hold('first')
  hold('second', () => {
    throw new Error('stuck')
  })
  hold('third')
  await life.stop()
  expect(stopped).toEqual(['third', 'first'])
  expect(logged).toMatchObject([{ resource: 'second', msg: 'did not stop cleanly' }])
})

test('a resource that takes too long to stop is skipped', async () => {
  const { life, hold, stopped, logged } = begin(30)
  hold('first')
  hold('endless', () => new Promise(() => {}))
  await life.stop()
  expect(stopped).toEqual(['first'])
  expect(logged).toMatchObject([{ resource: 'endless' }])
})

test('a second stop waits for the first and stops nothing twice', async () => {
  const { life, hold, stopped } = begin()
  hold('only', () => sleep(20))
  const both = [life.stop(), life.stop()]
  await both[1]
  expect(stopped).toEqual(['only'])
  await both[0]
  expect(stopped).toEqual(['only'])
})

test('resources work until the drain time is over, while the process is already stopping', async () => {
  const { life, hold, stopped } = begin()
  hold('listener')
  life.drainFor(200)
  expect(life.isStopping).toBe(false)
  const startedAt = Date.now()
  const ended = life.stop()
  expect([life.isStopping, stopped]).toEqual([true, []])
  await ended
  expect(stopped).toEqual(['listener'])
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(190)
})
