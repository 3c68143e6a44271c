/**
 * Who was told and has not acted is told ever more seldom. An actor that can't act at all, as after a bad release, would get
 * a signal every two seconds otherwise: its history would be full within hours, and the others would wait behind it.
 */
export interface Reminders {
  /** Those that are to be left alone now. */
  resting(): string[]
  /** Temporal has taken the signal for this account. */
  told(userId: string): void
}

const firstRestMillis = 4000
/** Also how long an actor that was lost in the meantime may stay lost. */
const restMillisMax = 600_000

interface Rest {
  readonly millis: number
  readonly endsAt: number
}

/** @param clock milliseconds that only grow. */
export function createReminders(clock: () => number = () => performance.now()): Reminders {
  const rests = new Map<string, Rest>()
  return {
    resting: () => {
      const now = clock()
      // Who was not told again for as long as it had rested has acted since.
      for (const [userId, { millis, endsAt }] of rests)
        if (now >= endsAt + Math.max(millis, 60_000)) rests.delete(userId)
      return [...rests].filter(([, { endsAt }]) => now < endsAt).map(([userId]) => userId)
    },
    told: (userId) => {
      const before = rests.get(userId)
      const millis = before === undefined ? firstRestMillis : Math.min(restMillisMax, before.millis * 2)
      rests.set(userId, { millis, endsAt: clock() + millis })
    },
  }
}
