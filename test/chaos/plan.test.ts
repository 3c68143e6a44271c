import { expect, test } from 'vitest'
import { createRandom } from '../system/fleet-random.ts'
import { createPlan, targets } from './plan.ts'

test('the same seed gives the same plan, and another seed another one', () => {
  expect(createPlan(createRandom(5), 60)).toEqual(createPlan(createRandom(5), 60))
  expect(createPlan(createRandom(5), 60)).not.toEqual(createPlan(createRandom(6), 60))
})

test('a plan of an hour kills, pauses and cuts off every process', () => {
  const { faults } = createPlan(createRandom(5), 3600)
  const found = new Set(faults.map(({ kind, target }) => `${kind} ${target}`))
  expect(found.size).toBe(3 * targets.length)
})

test('the actions of a plan are in order and within its time', () => {
  const times = createPlan(createRandom(5), 60).actions.map(({ atMillis }) => atMillis)
  expect(times).toEqual(times.toSorted((one, other) => one - other))
  expect(times.at(-1)).toBeLessThan(60_000)
  expect(times.length).toBeGreaterThan(100)
})
