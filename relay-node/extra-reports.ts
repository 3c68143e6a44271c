/**
 * Reports events of the stream at once, beside the usual reports: the control plane may hold the reply to one of those
 * for seconds, and takes the end of its connection for the end of the relay.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type HealthReport, report } from './health-report.ts'
import type { StreamEvents } from './stream-events.ts'

const pauseMillisMin = 1_000
const pauseMillisMax = 4_000

/** After a failed report the next one follows later, up to four seconds. */
export const extraPauseMillis = (failures: number): number => Math.min(pauseMillisMin * 2 ** failures, pauseMillisMax)

/** Sends a report for each event, at most one a second, until the signal is aborted. Never rejects. */
export async function reportEvents(
  events: Pick<StreamEvents, 'untilPending'>,
  { signal, ...options }: HealthReport,
): Promise<void> {
  let failures = 0
  for (;;) {
    await events.untilPending(signal)
    if (signal.aborted) return
    // The usual reports act on what the reply says.
    const outcome = await report({ ...options, signal, isExtra: true })
    failures = outcome.type === 'accepted' ? 0 : failures + 1
    await sleep(extraPauseMillis(failures), undefined, { signal }).catch(() => {})
  }
}
