/** The rule that decides whether instances may be another control plane's. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { describeFleetConflict, findFleetConflict, type SeenInstance } from '../../../domain/fleet/conflict.ts'

const seen = (fleetName: string | null, isKnown: boolean): SeenInstance => ({
  instanceId: `i-${fleetName}`,
  fleetName,
  isKnown,
})
const [known, unknown] = [true, false]

test.each([
  ['instances of this fleet, with or without a row,', 'prod', [seen('prod', known), seen('prod', unknown)]],
  ['unknown instances of another fleet that has a name', 'prod', [seen('staging', unknown)]],
  ['instances without a name of the only control plane', undefined, [seen(null, known)]],
  ['no instances', undefined, []],
])('%s are no conflict', (_, name, instances) => {
  expect(findFleetConflict(name, instances)).toBeNull()
})

test.each([
  ['its own instances from before it had a name', 'prod', seen(null, known), true, 'svc fleet adopt --name prod,'],
  ['its own instances under a former name', 'prod', seen('old', known), true, 'set the former name'],
  ['instances without a name that nobody knows', 'prod', seen(null, unknown), false, 'give that one a name first'],
  ['its own instances, which have been adopted', undefined, seen('prod', known), true, 'belongs to prod: set SVC_'],
  ['instances of another control plane', undefined, seen(null, unknown), true, 'each needs a name'],
  ['instances of a fleet with a name', undefined, seen('staging', unknown), true, 'each needs a name'],
])('a fleet conflicts with %s, and the way out is named', (_, name, instance, blocksSweep, wayOut) => {
  const conflict = findFleetConflict(name, [seen(name ?? null, known), instance])
  expect(conflict).toMatchObject({ blocksSweep })
  if (conflict) expect(describeFleetConflict(name, conflict)).toContain(wayOut)
})

test('a sweep that is allowed lists all instances that the database knows, and no unknown ones without a name', () => {
  const names = fc.constantFrom(null, 'prod', 'staging')
  const instance = fc.record({ instanceId: fc.string(), fleetName: names, isKnown: fc.boolean() })
  fc.assert(
    fc.property(names, fc.array(instance), (name, instances) => {
      fc.pre(!findFleetConflict(name ?? undefined, instances)?.blocksSweep)
      const swept = instances.filter(({ fleetName }) => fleetName === name)
      expect(instances.filter((found) => found.isKnown && !swept.includes(found))).toEqual([])
      expect(swept.filter((found) => !found.isKnown && found.fleetName === null)).toEqual([])
    }),
  )
})
