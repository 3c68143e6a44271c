/** The plan that a seed of the chaos run draws. */
import { expect, test } from 'vitest'
import { createRandom } from '../support/random.ts'
import { createPlan, reportPath, streamedRelay, targets } from './plan.ts'
import { times } from './service-times.ts'

test('the same seed gives the same plan, and another seed another one', () => {
  expect(createPlan(createRandom(5), 60)).toEqual(createPlan(createRandom(5), 60))
  expect(createPlan(createRandom(5), 60)).not.toEqual(createPlan(createRandom(6), 60))
})

test('a plan of an hour kills, pauses and cuts off every process, cuts the path of reports, and loses relays', () => {
  const { faults } = createPlan(createRandom(5), 3600)
  const kinds = ['kill', 'pause', 'cut']
  const expected = [...targets, streamedRelay].flatMap((target) => kinds.map((kind) => `${kind} ${target}`))
  expect([...new Set(faults.map(({ kind, target }) => `${kind} ${target}`))].toSorted()).toEqual(
    [...expected, `cut ${reportPath}`].toSorted(),
  )
})

test('every plan of a minute cuts the path of reports for longer than the health timeout', () => {
  for (let seed = 0; seed < 50; seed++) {
    const cuts = createPlan(createRandom(seed), 60).faults.filter(({ target }) => target === reportPath)
    expect(cuts.length).toBeGreaterThan(0)
    for (const { forMillis } of cuts) expect(forMillis).toBeGreaterThan(times.healthTimeoutSeconds * 1000)
  }
})

test('every plan of a minute loses the relay of the stream, and many kill another process meanwhile', () => {
  const plans = Array.from({ length: 50 }, (_, seed) => createPlan(createRandom(seed), 60).faults)
  for (const faults of plans) expect(faults.map(({ target }) => target)).toContain(streamedRelay)
  const beside = plans.flatMap((faults) =>
    faults.filter(({ pauseMillis }, index) => pauseMillis === null && faults[index - 1]?.target === streamedRelay),
  )
  expect(beside.length).toBeGreaterThan(10)
})

test('the actions of a plan are in order and within its time', () => {
  const times = createPlan(createRandom(5), 60).actions.map(({ atMillis }) => atMillis)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times.at(-1)).toBeLessThan(60_000)
  expect(times.length).toBeGreaterThan(100)
})
