/** The rule of the sweep: observations, epochs, and the breaker. */
import { describe, expect, test } from 'vitest'
import { planSweep, type UnownedInstance } from '../../../domain/fleet/orphan-sweep.ts'

const orphans = (count: number, values: Partial<UnownedInstance> = {}): UnownedInstance[] =>
  Array.from({ length: count }, (_, index) => ({
    instanceId: `i-${index}`,
    isRetired: false,
    unownedSeconds: 60,
    keptUntil: null,
    ...values,
  }))

describe('an instance without an owner', () => {
  test('waits for a second observation that is a minute after the first', () => {
    const [young] = orphans(1, { unownedSeconds: 59.9 })
    const [old] = orphans(1, { instanceId: 'old' })
    expect(
      planSweep(
        [young, old].filter((instance) => instance !== undefined),
        9,
      ),
    ).toEqual({
      destroy: ['old'],
      waiting: ['i-0'],
      kept: [],
      isBlocked: false,
      due: 1,
    })
  })

  test('is kept, and does not count, while it may carry a stream of an earlier epoch, unless it is retired or the sweep is forced', () => {
    const kept = orphans(9, { keptUntil: new Date() })
    const plan = { destroy: [], waiting: [], kept: kept.map(({ instanceId }) => instanceId), isBlocked: false, due: 0 }
    expect(planSweep(kept, 9)).toEqual(plan)
    expect(planSweep(orphans(1, { keptUntil: new Date(), isRetired: true }), 1)).toMatchObject({ destroy: ['i-0'] })
    expect(planSweep(kept, 9, { force: true })).toMatchObject({ destroy: { length: 9 }, kept: [] })
  })

  test('is destroyed at once when it is retired', () => {
    expect(planSweep(orphans(1, { isRetired: true, unownedSeconds: 0 }), 1).destroy).toEqual(['i-0'])
  })
})

describe('a sweep', () => {
  test('destroys nothing when more than half of at least five instances are due', () => {
    const retired = orphans(1, { instanceId: 'retired', isRetired: true })
    expect(planSweep([...orphans(5), ...retired], 9)).toEqual({
      destroy: [],
      waiting: [],
      kept: [],
      isBlocked: true,
      due: 5,
    })
  })

  test.each([
    [4, 4, false],
    [5, 9, true],
    [5, 10, false],
    [6, 11, true],
    [50, 100, false],
    [51, 100, true],
  ])('with %i due of %i listed instances is blocked: %s', (due, listed, isBlocked) => {
    expect(planSweep(orphans(due), listed)).toMatchObject({ isBlocked, destroy: { length: isBlocked ? 0 : due } })
  })

  test('is not blocked by retired instances, nor by those that wait', () => {
    expect(planSweep(orphans(20, { isRetired: true }), 20)).toMatchObject({ isBlocked: false, destroy: { length: 20 } })
    expect(planSweep(orphans(20, { unownedSeconds: 0 }), 20)).toMatchObject({ isBlocked: false, destroy: [] })
  })

  test('that is forced destroys what is due, and still waits for second observations', () => {
    const young = orphans(1, { instanceId: 'young', unownedSeconds: 0 })
    expect(planSweep([...orphans(9), ...young], 10, { force: true })).toMatchObject({
      destroy: { length: 9 },
      waiting: ['young'],
      isBlocked: false,
    })
  })
})
