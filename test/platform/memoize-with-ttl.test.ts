/** The cache of a value for a time, shared by concurrent callers. */
import { expect, test } from 'vitest'
import { memoizeWithTtl } from '../../platform/memoize-with-ttl.ts'

/** Memoizes a function that counts its calls, with a clock that the test sets. */
function memoizeCounter({ failing = false } = {}) {
  const state = { now: 0, calls: 0, failing }
  const count = async () => {
    state.calls += 1
    if (state.failing) throw new Error(`failed ${state.calls}`)
    return state.calls
  }
  return { state, load: memoizeWithTtl(1000, count, () => state.now) }
}

test('a value is returned from the cache until its TTL has passed', async () => {
  const { state, load } = memoizeCounter()
  expect(await load()).toBe(1)
  state.now = 999
  expect(await load()).toBe(1)
  state.now = 1000
  expect(await load()).toBe(2)
})

test('concurrent callers share one call', async () => {
  const { state, load } = memoizeCounter()
  expect(await Promise.all([load(), load(), load()])).toEqual([1, 1, 1])
  expect(state.calls).toBe(1)
})

test('concurrent callers share a failure, later callers load again', async () => {
  const { state, load } = memoizeCounter({ failing: true })
  const outcomes = await Promise.allSettled([load(), load()])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  state.failing = false
  expect(await load()).toBe(2)
})

test('callers share a call that takes longer than the TTL', async () => {
  const state = { now: 0, calls: 0 }
  let finish = (_: string) => {}
  const load = memoizeWithTtl(
    1000,
    () => {
      state.calls += 1
      return new Promise<string>((resolve) => {
        finish = resolve
      })
    },
    () => state.now,
  )
  const first = load()
  state.now = 5000
  const second = load()
  finish('late')
  expect(await Promise.all([first, second])).toEqual(['late', 'late'])
  expect(state.calls).toBe(1)
})
