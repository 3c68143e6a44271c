import { expect, test } from 'vitest'
import { kept } from '../../../providers/oauth/kept.ts'

/** A question whose answers count up, at a time that the test moves. */
function counting({ failing = false } = {}) {
  const clock = { now: 0, asked: 0, failing }
  const ask = async () => {
    clock.asked += 1
    if (clock.failing) throw new Error(`failed ${clock.asked}`)
    return clock.asked
  }
  return { clock, ask: kept(1000, ask, () => clock.now) }
}

test('an answer is kept for its time, and then asked for anew', async () => {
  const { clock, ask } = counting()
  expect(await ask()).toBe(1)
  clock.now = 999
  expect(await ask()).toBe(1)
  clock.now = 1000
  expect(await ask()).toBe(2)
})

test('those who ask at the same time share one question', async () => {
  const { clock, ask } = counting()
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([1, 1, 1])
  expect(clock.asked).toBe(1)
})

test('a failure is shared by those who waited for it, and by nobody after them', async () => {
  const { clock, ask } = counting({ failing: true })
  const outcomes = await Promise.allSettled([ask(), ask()])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  clock.failing = false
  expect(await ask()).toBe(2)
})
