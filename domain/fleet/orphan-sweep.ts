/** Which instances a sweep of a region destroys. Pure, with all durations in seconds as Postgres measured them. */

/**
 * An instance without an owner is destroyed only when two observations at least this far apart found it without one.
 */
export const observationSeconds = 60

/**
 * From the beginning of an epoch on, instances that the database may not know are kept for as long. Relays without a
 * stream end themselves earlier, and so do those whose stream ends.
 */
export const keptSecondsMax = 86_400

export interface UnownedInstance {
  readonly instanceId: string
  /** A decision to destroy it was stored, so one observation is enough. */
  readonly isRetired: boolean
  /** Since the first of the observations that found no owner; 0 in the first one. */
  readonly unownedSeconds: number
  /**
   * It may carry a stream that began before the present epoch of the database; null when it cannot, or not any more.
   */
  readonly keptUntil: Date | null
}

export interface SweepPlan {
  readonly destroy: readonly string[]
  /** Instances that wait for a second observation. */
  readonly waiting: readonly string[]
  /** Instances that may carry a stream of an earlier epoch. */
  readonly kept: readonly string[]
  /** The plan destroys nothing, since too many instances seem to have no owner. */
  readonly isBlocked: boolean
  /** The number of instances that are due, and not retired. */
  readonly due: number
}

/** A sweep that finds fewer due orphans than this is never blocked. */
const blockedFrom = 5

/**
 * When most instances of a region seem to have no owner, the rows are more likely wrong than the instances: the
 * database was restored to an earlier time, or is another service's.
 * @param listed the number of instances that the provider lists.
 * @param force true when an operator has decided that the rows are right.
 */
export function planSweep(unowned: readonly UnownedInstance[], listed: number, { force = false } = {}): SweepPlan {
  const isKept = ({ isRetired, keptUntil }: UnownedInstance) => !force && !isRetired && keptUntil !== null
  const isDue = (instance: UnownedInstance) =>
    !isKept(instance) && (instance.isRetired || instance.unownedSeconds >= observationSeconds)
  const ids = (instances: readonly UnownedInstance[]) => instances.map(({ instanceId }) => instanceId)
  const due = unowned.filter((instance) => isDue(instance) && !instance.isRetired).length
  const isBlocked = !force && due >= blockedFrom && due > listed / 2
  return {
    destroy: isBlocked ? [] : ids(unowned.filter(isDue)),
    waiting: ids(unowned.filter((instance) => !isDue(instance) && !isKept(instance))),
    kept: ids(unowned.filter(isKept)),
    isBlocked,
    due,
  }
}
