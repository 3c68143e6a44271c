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

test('a plan has no fault in its first and its last seconds', () => {
  const { faults } = createPlan(createRandom(5), 60)
  expect(faults.length).toBeGreaterThan(2)
  expect(faults.filter(({ atMillis }) => atMillis < 5_000 || atMillis > 60_000)).toEqual([])
})
