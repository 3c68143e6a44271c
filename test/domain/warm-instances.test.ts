import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  planWarmInstances,
  unboundWaitSecondsMax,
  type WarmInstance,
  type WarmTarget,
  warmReportSecondsMax,
} from '../../domain/warm-instances.ts'

const target: WarmTarget = {
  warm: 2,
  capacity: 10,
  placesTaken: 0,
  bootSecondsMax: 300,
  healthTimeoutSeconds: 45,
  mayCreate: true,
}
const instance = (instanceId: string, fields: Partial<WarmInstance> = {}): WarmInstance => ({
  instanceId,
  isCurrent: true,
  hasReported: true,
  silentSeconds: 1,
  ...fields,
})

describe('the plan of warm instances', () => {
  test('creates as many as are missing, within the capacity', () => {
    expect(planWarmInstances([], target)).toEqual({ retire: [], create: 2 })
    expect(planWarmInstances([instance('a')], { ...target, placesTaken: 1 })).toEqual({ retire: [], create: 1 })
    expect(planWarmInstances([], { ...target, placesTaken: 9 })).toEqual({ retire: [], create: 1 })
    expect(planWarmInstances([], { ...target, placesTaken: 12 })).toEqual({ retire: [], create: 0 })
  })

  test('retires a silent instance and one of an old image, and creates others', () => {
    const unbound = [instance('silent', { silentSeconds: 46 }), instance('old', { isCurrent: false })]
    expect(planWarmInstances(unbound, { ...target, placesTaken: 2 })).toEqual({ retire: ['silent', 'old'], create: 2 })
  })

  test('lets an instance start for longer than the health timeout', () => {
    const booting = [instance('a', { hasReported: false, silentSeconds: 200 })]
    expect(planWarmInstances(booting, { ...target, warm: 1 })).toEqual({ retire: [], create: 0 })
    const overdue = [instance('a', { hasReported: false, silentSeconds: 301 })]
    expect(planWarmInstances(overdue, { ...target, warm: 1 })).toEqual({ retire: ['a'], create: 1 })
  })

  test('keeps those that are ready when there are more than needed', () => {
    const unbound = [instance('booting', { hasReported: false }), instance('ready')]
    expect(planWarmInstances(unbound, { ...target, warm: 1 }).retire).toEqual(['booting'])
  })

  test('never exceeds the capacity or the wanted number, and reaches it when there is room', () => {
    const anyInstance = fc.record({
      isCurrent: fc.boolean(),
      hasReported: fc.boolean(),
      silentSeconds: fc.integer({ min: 0, max: 400 }),
    })
    fc.assert(
      fc.property(
        fc.array(anyInstance, { maxLength: 8 }),
        fc.nat(8),
        fc.nat(12),
        fc.nat(6),
        fc.boolean(),
        (fields, warm, capacity, others, mayCreate) => {
          const unbound = fields.map((one, index) => instance(`i-${index}`, one))
          const placesTaken = unbound.length + others
          const { retire, create } = planWarmInstances(unbound, { ...target, warm, capacity, placesTaken, mayCreate })
          const kept = unbound.filter(({ instanceId }) => !retire.includes(instanceId))
          expect(kept.length + create).toBeLessThanOrEqual(warm)
          expect(create).toBeGreaterThanOrEqual(0)
          if (create > 0) expect(placesTaken + create).toBeLessThanOrEqual(capacity)
          if (mayCreate && capacity - placesTaken >= warm) expect(kept.length + create).toBe(warm)
          for (const one of kept) expect(one.isCurrent).toBe(true)
        },
      ),
    )
  })
})

test('an instance reports several times before its silence counts', () => {
  for (const healthTimeoutSeconds of [3, 45, 600]) {
    expect(2 * unboundWaitSecondsMax(healthTimeoutSeconds)).toBeLessThanOrEqual(
      warmReportSecondsMax(healthTimeoutSeconds),
    )
    expect(warmReportSecondsMax(healthTimeoutSeconds)).toBeLessThan(healthTimeoutSeconds)
  }
})
