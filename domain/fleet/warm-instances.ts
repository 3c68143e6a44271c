/**
 * The rules of warm instances: how many a region keeps ready, and which are replaced. Pure, with all durations in
 * seconds as Postgres measured them.
 */

/**
 * The longest wait of a report without a session, so that an instance reports three times within the health timeout.
 */
export const unboundWaitSecondsMax = (healthTimeoutSeconds: number): number => Math.min(30, healthTimeoutSeconds / 3)

/** An instance that missed two reports gets no session. */
export const warmReportSecondsMax = (healthTimeoutSeconds: number): number => (healthTimeoutSeconds * 2) / 3

/**
 * A warm instance with a session that has not reported with it for this long is replaced: it reports without waiting.
 */
export const assignedReportSecondsMax = 10

export interface WarmInstance {
  readonly instanceId: string
  /** Whether it runs the region's present image. */
  readonly isCurrent: boolean
  /** Since its last report, or since its creation when there was none. */
  readonly silentSeconds: number
  readonly hasReported: boolean
  /** It may have got a session that a restored database does not know, so it is not retired. */
  readonly mayHaveStream: boolean
}

export interface WarmTarget {
  /** The number of instances to keep ready: 0 in a drained region. */
  readonly warm: number
  /** The maximum number of instances in the region. */
  readonly capacity: number
  /** All instances of the region that may exist, and live sessions that have none yet. */
  readonly placesTaken: number
  /** Those of them that are retired, and leave their places soon. */
  readonly retired: number
  /** A new instance may take this long until its first report. */
  readonly bootSecondsMax: number
  /** An instance that reported before is replaced after this long without a report. */
  readonly healthTimeoutSeconds: number
  /** False during the pause after a failed creation. */
  readonly mayCreate: boolean
}

export interface WarmPlan {
  /** Instances to retire, since they are silent, are more than needed, or run an old image and are replaced. */
  readonly retire: readonly string[]
  /** The number of instances to reserve. */
  readonly create: number
}

/**
 * Instances of an old image that are ready are replaced one after the other: each serves starts until a current one is
 * ready in its place. In a region without room one is retired first, and no other before its successor is ready.
 * @param unbound the warm instances of the region without a session, the oldest first.
 */
export function planWarmInstances(unbound: readonly WarmInstance[], target: WarmTarget): WarmPlan {
  const { warm, mayCreate } = target
  const usable = unbound.filter((instance) => !isSilent(instance, target))
  const current = usable.filter(({ isCurrent }) => isCurrent)
  // Those that are ready are kept before those that are starting.
  const preferred = [
    ...current.filter(({ hasReported }) => hasReported),
    ...current.filter(({ hasReported }) => !hasReported),
  ]
  const keptCurrent = preferred.slice(0, warm)
  const ready = keptCurrent.filter(({ hasReported }) => hasReported).length
  const isOneStarting = keptCurrent.length > ready
  const old = usable.filter(({ hasReported, isCurrent }) => hasReported && !isCurrent)
  const keptOld = old.slice(Math.max(0, old.length - (warm - ready)))
  const staying = new Set([...keptCurrent, ...keptOld, ...unbound.filter(({ mayHaveStream }) => mayHaveStream)])
  const leaving = target.retired + unbound.length - staying.size
  const hasNoRoomSoon = target.placesTaken - leaving === target.capacity
  // Without the permission to create, its place would stay empty.
  if (mayCreate && hasNoRoomSoon && !isOneStarting && ready + keptOld.length >= warm) keptOld.shift()

  const kept = new Set([...keptCurrent, ...keptOld])
  const retire = unbound
    .filter((instance) => !kept.has(instance) && !instance.mayHaveStream)
    .map(({ instanceId }) => instanceId)
  const missing = warm - kept.size
  // Beside old ones that are ready, one more than needed exists until it replaces the next of them.
  const wanted = keptOld.length > 0 && !isOneStarting ? Math.max(1, missing) : Math.max(0, missing)
  // A retired instance takes its place until it is gone.
  const room = Math.max(0, target.capacity - target.placesTaken)
  return { retire, create: mayCreate ? Math.min(wanted, room) : 0 }
}

const isSilent = ({ hasReported, silentSeconds }: WarmInstance, target: WarmTarget): boolean =>
  silentSeconds > (hasReported ? target.healthTimeoutSeconds : target.bootSecondsMax)
