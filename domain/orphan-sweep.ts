/** Which instances a sweep of a region destroys. Pure, with all durations in seconds as Postgres measured them. */

/** An instance without an owner is destroyed only when two observations at least this far apart found it without one. */
export const observationSeconds = 60

export interface UnownedInstance {
  readonly instanceId: string
  /** A decision to destroy it was stored, so one observation is enough. */
  readonly isRetired: boolean
  /** Since the first of the observations that found no owner; 0 in the first one. */
  readonly unownedSeconds: number
}

export interface SweepPlan {
  readonly destroy: readonly string[]
  /** Instances that wait for a second observation. */
  readonly waiting: readonly string[]
  /** The plan destroys nothing, since too many instances seem to have no owner. */
  readonly isBlocked: boolean
  /** The number of instances that are due, and not retired. */
  readonly due: number
}

/** A sweep that finds fewer due orphans than this is never blocked. */
const blockedFrom = 5

/**
 * When most instances of a region seem to have no owner, the rows are more likely wrong than the instances: the database was
 * restored to an earlier time, or is another service's.
 * @param listed the number of instances that the provider lists.
 * @param force true when an operator has decided that the rows are right.
 */
export function planSweep(unowned: readonly UnownedInstance[], listed: number, { force = false } = {}): SweepPlan {
  const isDue = ({ isRetired, unownedSeconds }: UnownedInstance) => isRetired || unownedSeconds >= observationSeconds
  const ids = (instances: readonly UnownedInstance[]) => instances.map(({ instanceId }) => instanceId)
  const due = unowned.filter((one) => isDue(one) && !one.isRetired).length
  const isBlocked = !force && due >= blockedFrom && due > listed / 2
  return {
    destroy: isBlocked ? [] : ids(unowned.filter(isDue)),
    waiting: ids(unowned.filter((one) => !isDue(one))),
    isBlocked,
    due,
  }
}
