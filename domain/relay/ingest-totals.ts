/**
 * The totals of a session: what the processes of its relays have received, one after the other. The counters of a
 * process begin at 0. Reports may overtake each other, so a smaller counter of a process, and any of an earlier
 * process, is that of an older report: `db/relay/health.ts` adds them up.
 */

/** What a report states about the process that sent it. All are null when the report does not state the bytes. */
export interface ProcessTotals {
  /** Received so far. */
  readonly bytesTotal: number | null
  /** The time with data so far, in milliseconds. Former relays do not state it. */
  readonly publishingMs: number | null
  /**
   * In milliseconds since 1970 by its clock. The processes of a former relay, which does not state it, count as one.
   */
  readonly startedAtMs: number | null
}

export interface SessionTotals {
  readonly bytesReceived: number
  readonly secondsPublishing: number
}

/** The sum of the bytes stays a number that JSON can represent exactly. */
export const bytesReceivedMax = Number.MAX_SAFE_INTEGER
/** Thirty years, which a 32-bit number can represent. */
export const secondsPublishingMax = 1e9

export interface StoredTotals extends SessionTotals {
  readonly peakBitrateKbps: number
  /** From the first time that the session was active until its end, or until now. */
  readonly activeSeconds: number
}

export interface ShownTotals {
  readonly secondsPublishing: number
  /** While data came in; null when none did. */
  readonly averageBitrateKbps: number | null
}

/**
 * The time with a stream is at most the time for which the session was active, and the average at most the peak. Of
 * relays that measure both this is so already, but for what they receive before the control plane knows that they run.
 * The time of a former relay is that between pairs of reports, which is too short.
 */
export const shownTotals = (totals: StoredTotals): ShownTotals => {
  const { bytesReceived, secondsPublishing, peakBitrateKbps, activeSeconds } = totals
  const averageKbps = (bytesReceived * 8) / 1000 / secondsPublishing
  return {
    secondsPublishing: Math.floor(Math.max(0, Math.min(secondsPublishing, activeSeconds))),
    averageBitrateKbps:
      bytesReceived > 0 && secondsPublishing > 0 ? Math.min(Math.round(averageKbps), peakBitrateKbps) : null,
  }
}
