import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'

function begin(stopMillisMax?: number) {
  const logged: { what?: string; msg: string }[] = []
  const log = createLog('test', 'info', { write: (line) => void logged.push(JSON.parse(line)) })
  const life = new Lifecycle(log, stopMillisMax)
  const stopped: string[] = []
  const hold = (what: string, stop: () => unknown = () => {}) =>
    life.hold(what, what, async (value) => {
      await stop()
      stopped.push(value)
    })
  return { life, hold, stopped, logged }
}

test('what is held is stopped in reverse, one after the other', async () => {
  const { life, hold, stopped } = begin()
  expect(hold('database')).toBe('database')
  hold('worker', () => sleep(20))
  hold('listener', () => sleep(10))
  await life.stop()
  expect(stopped).toEqual(['listener', 'worker', 'database'])
})

test('what fails to stop is logged, and the others are stopped all the same', async () => {
  const { life, hold, stopped, logged } = begin()
  hold('first')
  hold('second', () => {
    throw new Error('stuck')
  })
  hold('third')
  await life.stop()
  expect(stopped).toEqual(['third', 'first'])
  expect(logged).toMatchObject([{ what: 'second', msg: 'did not stop cleanly' }])
})

test('what takes too long to stop is not waited for', async () => {
  const { life, hold, stopped, logged } = begin(30)
  hold('first')
  hold('endless', () => new Promise(() => {}))
  const startedAt = Date.now()
  await life.stop()
  expect(Date.now() - startedAt).toBeLessThan(1000)
  expect(stopped).toEqual(['first'])
  expect(logged).toMatchObject([{ what: 'endless' }])
})

test('stopping twice is stopping once, and both wait for the end', async () => {
  const { life, hold, stopped } = begin()
  hold('only', () => sleep(20))
  const both = [life.stop(), life.stop()]
  await both[1]
  expect(stopped).toEqual(['only'])
  await both[0]
  expect(stopped).toEqual(['only'])
})

test('what drains is stopping at once, and works until its time is over', async () => {
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
