/** What a start does with the user's other live sessions. */
import type { RelayCommand } from './session.ts'

export interface LiveSession {
  readonly command: RelayCommand
  /** Whether the session counts against the limit of concurrent relays. */
  readonly countsAgainstLimit: boolean
}

/** A session that is stopping can be resumed by a start, which needs the same entitlement as a new session. */
export const isStopping = ({ countsAgainstLimit, command }: LiveSession): boolean =>
  !countsAgainstLimit && command !== 'disconnect'

/**
 * The sessions that a new one displaces. Sessions in their stop grace do not count against the limit, but they run on
 * an instance: those that would exceed the limit together with the new session are stopped at once, the oldest first.
 * @param live the user's other live sessions, the oldest first.
 */
export function displacedByStart<Session extends LiveSession>(live: readonly Session[], limit: number): Session[] {
  const staying = live.filter(({ command }) => command === 'run' || command === 'stop')
  return staying.filter(isStopping).slice(0, Math.max(0, staying.length + 1 - limit))
}
