/** The plan of warm instances: created, retired and kept ones. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  planWarmInstances,
  unboundWaitSecondsMax,
  type WarmInstance,
  type WarmTarget,
  warmReportSecondsMax,
} from '../../../domain/fleet/warm-instances.ts'

const target: WarmTarget = {
  warm: 2,
  capacity: 10,
  placesTaken: 0,
  retired: 0,
  bootSecondsMax: 300,
  healthTimeoutSeconds: 45,
  mayCreate: true,
}
const instance = (instanceId: string, fields: Partial<WarmInstance> = {}): WarmInstance => ({
  instanceId,
  isCurrent: true,
  hasReported: true,
  silentSeconds: 1,
  mayHaveStream: false,
  ...fields,
})

describe('the plan of warm instances', () => {
  test('creates as many as are missing, within the capacity', () => {
    expect(planWarmInstances([], target)).toEqual({ retire: [], create: 2 })
    expect(planWarmInstances([instance('a')], { ...target, placesTaken: 1 })).toEqual({ retire: [], create: 1 })
    expect(planWarmInstances([], { ...target, placesTaken: 9 })).toEqual({ retire: [], create: 1 })
    expect(planWarmInstances([], { ...target, placesTaken: 12 })).toEqual({ retire: [], create: 0 })
  })

  test('retires a silent instance, and one of an old image that is not ready, and creates others', () => {
    const unbound = [
      instance('silent', { silentSeconds: 46 }),
      instance('old and silent', { silentSeconds: 46, isCurrent: false }),
      instance('old and starting', { hasReported: false, isCurrent: false }),
    ]
    expect(planWarmInstances(unbound, { ...target, placesTaken: 3 })).toEqual({
      retire: ['silent', 'old and silent', 'old and starting'],
      create: 2,
    })
  })

  test('retires none that may have a session of an earlier epoch, and creates another for one that is silent', () => {
    const unbound = [
      instance('silent', { silentSeconds: 46, mayHaveStream: true }),
      instance('old', { isCurrent: false, mayHaveStream: true }),
    ]
    expect(planWarmInstances(unbound, { ...target, placesTaken: 2 })).toEqual({ retire: [], create: 1 })
    expect(planWarmInstances(unbound, { ...target, warm: 0 })).toEqual({ retire: [], create: 0 })
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

  test('never exceeds the capacity, or the wanted number by more than one, and reaches it when there is room', () => {
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
          const unbound = fields.map((values, index) => instance(`i-${index}`, values))
          const placesTaken = unbound.length + others
          const { retire, create } = planWarmInstances(unbound, { ...target, warm, capacity, placesTaken, mayCreate })
          const kept = unbound.filter(({ instanceId }) => !retire.includes(instanceId))
          const old = kept.filter(({ isCurrent }) => !isCurrent)
          expect(kept.length - old.length + create).toBeLessThanOrEqual(warm)
          expect(create).toBeGreaterThanOrEqual(0)
          if (create > 0) {
            expect(placesTaken + create).toBeLessThanOrEqual(capacity)
            expect(kept.length + create).toBeLessThanOrEqual(old.length > 0 ? warm + 1 : warm)
          }
          if (mayCreate && capacity - placesTaken > warm) expect(kept.length + create).toBeGreaterThanOrEqual(warm)
          for (const { hasReported } of old) expect(hasReported).toBe(true)
        },
      ),
    )
  })
})

describe('a new image', () => {
  const old = (name: string) => instance(name, { isCurrent: false })
  const starting = (name: string) => instance(name, { hasReported: false })

  test.each([
    { name: 'is tried beside the old ones', unbound: [old('a'), old('b')], retire: [], create: 1 },
    { name: 'waits for the one that starts', unbound: [old('a'), old('b'), starting('c')], retire: [], create: 0 },
    {
      name: 'replaces the oldest, then the next',
      unbound: [old('a'), old('b'), instance('c')],
      retire: ['a'],
      create: 1,
    },
    { name: 'has replaced all', unbound: [old('b'), instance('c'), instance('d')], retire: ['b'], create: 0 },
    { name: 'fills what starts have taken at once', unbound: [old('a')], target: { warm: 4 }, retire: [], create: 3 },
    { name: 'is not wanted', unbound: [old('a'), starting('b')], target: { warm: 0 }, retire: ['a', 'b'], create: 0 },
    { name: 'cannot be created', unbound: [old('a'), old('b')], target: { mayCreate: false }, retire: [], create: 0 },
  ])('$name', ({ unbound, retire, create, target: fields }) => {
    expect(planWarmInstances(unbound, { ...target, placesTaken: unbound.length, ...fields })).toEqual({
      retire,
      create,
    })
  })

  const full = { capacity: 2, placesTaken: 2 }

  test.each([
    { name: 'takes the place of the oldest', unbound: [old('a'), old('b')], retire: ['a'] },
    { name: 'waits for a place that becomes free', unbound: [old('b')], target: { retired: 1 }, retire: [] },
    { name: 'waits for the one that starts', unbound: [old('b'), starting('c')], retire: [] },
    { name: 'takes the next place', unbound: [old('b'), instance('c')], retire: ['b'] },
    { name: 'leaves the only one that is ready', unbound: [old('b')], retire: [] },
    {
      name: 'leaves all while it cannot be created',
      unbound: [old('a'), old('b')],
      target: { mayCreate: false },
      retire: [],
    },
    {
      name: 'leaves all while more exist than may',
      unbound: [old('a'), old('b')],
      target: { placesTaken: 3 },
      retire: [],
    },
  ])('in a region without room $name', ({ unbound, retire, target: fields }) => {
    expect(planWarmInstances(unbound, { ...target, ...full, ...fields })).toEqual({ retire, create: 0 })
  })

  test('replaces all instances, and the region never has fewer ready than wanted, or one fewer where it has no room', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.nat(3),
        fc.array(fc.nat(3), { maxLength: 30 }),
        (warm, spare, someDelays) => {
          const delays = [...someDelays, 0]
          const capacity = warm + spare
          let unbound = Array.from({ length: warm }, (_, index) => old(`old-${index}`))
          let retired: number[] = []
          for (let step = 0; step < 300; step += 1) {
            const delay = delays[step % delays.length] as number
            const placesTaken = unbound.length + retired.length
            const plan = planWarmInstances(unbound, {
              ...target,
              warm,
              capacity,
              placesTaken,
              retired: retired.length,
            })
            expect(placesTaken + plan.create).toBeLessThanOrEqual(capacity)
            const kept = unbound.filter(({ instanceId }) => !plan.retire.includes(instanceId))
            const ready = kept.filter(({ hasReported }) => hasReported).length
            expect(ready).toBeGreaterThanOrEqual(spare === 0 ? warm - 1 : warm)
            // A destruction and a start take some steps.
            retired = [
              ...retired.map((steps) => steps - 1).filter((steps) => steps > 0),
              ...plan.retire.map(() => delay + 1),
            ]
            unbound = kept.map((survivor) => (delay === 0 ? { ...survivor, hasReported: true } : survivor))
            for (let count = 0; count < plan.create; count += 1) unbound.push(starting(`new-${step}-${count}`))
          }
          expect(unbound.map(({ isCurrent, hasReported }) => isCurrent && hasReported)).toEqual(Array(warm).fill(true))
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
