/**
 * Whether the instances that a cloud account shows fit together with the name of this fleet. Several control planes may
 * use one account: names keep them apart, and an instance without a name may be anybody's.
 */

export interface SeenInstance {
  readonly instanceId: string
  /** Null for an instance without a name. */
  readonly fleetName: string | null
  /** This database has its creation or its session. */
  readonly isKnown: boolean
}

export interface FleetConflict {
  /** Instances that this database knows and that belong to no fleet or to another one. */
  readonly elsewhere: readonly SeenInstance[]
  /** Instances whose owner is unclear: unknown to this database, and they or this fleet have no name. */
  readonly strangers: readonly SeenInstance[]
  /** A sweep could destroy instances of others, or count instances of this database as gone. */
  readonly blocksSweep: boolean
}

/** Null when all is well. Instances of other fleets that have a name are no conflict for a fleet that has one too. */
export function findFleetConflict(fleetName: string | undefined, seen: readonly SeenInstance[]): FleetConflict | null {
  const own = fleetName ?? null
  const elsewhere = seen.filter((instance) => instance.isKnown && instance.fleetName !== own)
  const strangers = seen.filter((instance) => !instance.isKnown && (instance.fleetName === null || own === null))
  if (elsewhere.length === 0 && strangers.length === 0) return null
  return { elsewhere, strangers, blocksSweep: own === null || elsewhere.length > 0 }
}

/** What is wrong and what to do next, in one line. */
export function describeFleetConflict(fleetName: string | undefined, { elsewhere, strangers }: FleetConflict): string {
  return [
    ...(elsewhere.length > 0 ? [describeElsewhere(fleetName, elsewhere)] : []),
    ...(strangers.length > 0 ? [describeStrangers(fleetName, strangers)] : []),
  ].join(' ')
}

function describeElsewhere(fleetName: string | undefined, elsewhere: readonly SeenInstance[]): string {
  const what = `${countOf(elsewhere)} of this database ${belong(elsewhere)}`
  if (fleetName === undefined) return `${what}: set SVC_FLEET_NAME to that name and restart the workers.`
  if (elsewhere.every((instance) => instance.fleetName === null))
    return `${what}: run svc fleet adopt --name ${fleetName}, unless this database is a copy of another control plane's.`
  return `${what}, and SVC_FLEET_NAME is ${fleetName}: set the former name until they have ended. If this database is a copy of another control plane's, empty it.`
}

function describeStrangers(fleetName: string | undefined, strangers: readonly SeenInstance[]): string {
  const what = `${countOf(strangers)} that this database does not know ${belong(strangers)}`
  const name = fleetName ?? 'NAME'
  const restored = `if this database was restored, run svc fleet adopt --name ${name} --force`
  return fleetName === undefined
    ? `${what}: if another control plane uses this account, each needs a name: run svc fleet adopt --name NAME, set SVC_FLEET_NAME=NAME and restart the workers; ${restored}.`
    : `${what}: if they are another control plane's, give that one a name first; ${restored}.`
}

const idsShown = 3

function countOf(instances: readonly SeenInstance[]): string {
  const ids = instances.slice(0, idsShown).map(({ instanceId }) => instanceId)
  const names = [...ids, ...(instances.length > idsShown ? ['…'] : [])].join(', ')
  return `${instances.length} ${instances.length === 1 ? 'instance' : 'instances'} (${names})`
}

function belong(instances: readonly SeenInstance[]): string {
  const fleets = [...new Set(instances.map(({ fleetName }) => fleetName ?? 'no fleet'))].toSorted()
  return `${instances.length === 1 ? 'belongs' : 'belong'} to ${fleets.join(', ')}`
}
