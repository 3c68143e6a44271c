/**
 * The rules of warm instances: how many a region keeps ready, and which are replaced. Pure, with all durations in seconds as
 * Postgres measured them.
 */

/** The longest wait of a report without a session, so that an instance reports three times within the health timeout. */
export const unboundWaitSecondsMax = (healthTimeoutSeconds: number): number => Math.min(30, healthTimeoutSeconds / 3)

/** An instance that missed two reports gets no session. */
export const warmReportSecondsMax = (healthTimeoutSeconds: number): number => (healthTimeoutSeconds * 2) / 3

/** A warm instance with a session that has not reported with it for this long is replaced: it reports without waiting. */
export const assignedReportSecondsMax = 10

export interface WarmInstance {
  readonly instanceId: string
  /** Whether it runs the region's present image. */
  readonly isCurrent: boolean
  /** Since its last report, or since its creation when there was none. */
  readonly silentSeconds: number
  readonly hasReported: boolean
}

export interface WarmTarget {
  /** The number of instances to keep ready: 0 in a drained region. */
  readonly warm: number
  /** The maximum number of instances in the region. */
  readonly capacity: number
  /** All instances of the region that may exist, and live sessions that have none yet. */
  readonly placesTaken: number
  /** A new instance may take this long until its first report. */
  readonly bootSecondsMax: number
  /** An instance that reported before is replaced after this long without a report. */
  readonly healthTimeoutSeconds: number
  /** False during the pause after a failed creation. */
  readonly mayCreate: boolean
}

export interface WarmPlan {
  /** Instances to retire, since they are silent, run an old image, or are more than needed. */
  readonly retire: readonly string[]
  /** The number of instances to reserve. */
  readonly create: number
}

/** @param unbound the warm instances of the region without a session, the oldest first. */
export function planWarmInstances(unbound: readonly WarmInstance[], target: WarmTarget): WarmPlan {
  const usable = unbound.filter((instance) => instance.isCurrent && !isSilent(instance, target))
  // Those that are ready are kept before those that are starting.
  const preferred = [...usable.filter(({ hasReported }) => hasReported), ...usable.filter((one) => !one.hasReported)]
  const kept = new Set(preferred.slice(0, target.warm))
  const retire = unbound.filter((instance) => !kept.has(instance)).map(({ instanceId }) => instanceId)
  // A retired instance takes its place until it is gone.
  const room = Math.max(0, target.capacity - target.placesTaken)
  return { retire, create: target.mayCreate ? Math.min(target.warm - kept.size, room) : 0 }
}

const isSilent = ({ hasReported, silentSeconds }: WarmInstance, target: WarmTarget): boolean =>
  silentSeconds > (hasReported ? target.healthTimeoutSeconds : target.bootSecondsMax)
