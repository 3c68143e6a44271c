/**
 * Reports of relays with a session that are held open. A connection that ends meanwhile shows at once that the relay,
 * or the way to it, is gone. A change of the session ends the wait, so that the relay reports again
 * and gets it, and so does the first look at it.
 */
import type { Socket } from 'node:net'
import { Gauge, type Registry } from 'prom-client'
import type { Database } from '../../db/connection.ts'
import { triggerJob } from '../../db/operations/jobs.ts'
import { recordSuspicions, type Suspicion } from '../../db/relay/health.ts'
import { listenForSessionChanges } from '../../db/relay/session-changes.ts'
import { watchedReportSeconds } from '../../domain/relay/health.ts'
import { batch } from '../../platform/batch.ts'
import type { Logger } from '../../platform/log.ts'
import type { WatchedSessions } from './watched-sessions.ts'

/** The most reports that are held at a time. Further ones are answered at once. */
const defaultHeldMax = 20_000

export interface HeldReport {
  readonly sessionId: string
  readonly instanceId: string
  readonly seconds: number
  readonly socket: Socket
}

export interface HeldReports {
  readonly canHold: () => boolean
  /** To be called with each report of a session: the one that was expected after a held report has come. */
  endExpectation(sessionId: string): void
  /** Resolves with the seconds that the report was held. */
  hold(report: HeldReport): Promise<number>
  countHeld(): number
  /** Answers all held reports. Later ones are not held, and none of them makes its relay suspect. */
  stop(): Promise<void>
}

interface Deps {
  readonly sql: Database
  /** A relay is suspect when its next report is this late. */
  readonly lateSeconds: number
  readonly log: Logger
  readonly watched: Pick<WatchedSessions, 'isWatched' | 'onBegin'>
  readonly heldMax?: number
}

export function createHeldReports({ sql, log, lateSeconds, watched, heldMax = defaultHeldMax }: Deps): HeldReports {
  /** By session: the function that ends the wait. */
  const held = new Map<string, () => void>()
  /** By session: the time at which its next report counts as late. */
  const expected = new Map<string, NodeJS.Timeout>()
  let isStopped = false
  const recordSuspicion = batch((suspects: Suspicion[]) => recordSuspicions(sql, suspects))
  const suspect = (id: string, instanceId: string, quietSeconds: number): void => {
    const store = async () => {
      await recordSuspicion({ id, instanceId, quietSeconds })
      await triggerJob(sql, 'watch_relays')
    }
    store().catch((error: unknown) =>
      log.warn({ err: error, session_id: id }, 'the end of an open report could not be stored'),
    )
  }
  const endExpectation = (sessionId: string): void => {
    clearTimeout(expected.get(sessionId))
    expected.delete(sessionId)
  }
  /** The next report may come to another process, which stores it. */
  const expectNext = (sessionId: string, instanceId: string): void => {
    endExpectation(sessionId)
    const onLate = () => {
      expected.delete(sessionId)
      suspect(sessionId, instanceId, lateSeconds)
    }
    expected.set(sessionId, setTimeout(onLate, lateSeconds * 1000).unref())
  }
  listenForSessionChanges(sql, {
    onChange: ({ sessionId, isOfStream }) => {
      // It comes from the relay, or with a change that ends the wait.
      if (!isOfStream) held.get(sessionId)?.()
    },
    onListening: () => {},
  }).catch((error: unknown) => log.warn({ err: error }, 'held reports end by their time only, for now'))

  watched.onBegin((sessionId) => held.get(sessionId)?.())

  return {
    canHold: () => !isStopped && held.size < heldMax,
    endExpectation,
    hold: async ({ sessionId, instanceId, seconds, socket }) => {
      // The relay has connected again.
      held.get(sessionId)?.()
      const startedAt = performance.now()
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timeout)
          socket.off('close', onClose)
          if (held.get(sessionId) === end) held.delete(sessionId)
          if (!isStopped) expectNext(sessionId, instanceId)
          resolve()
        }
        const onClose = () => {
          end()
          endExpectation(sessionId)
          if (!isStopped) suspect(sessionId, instanceId, 0)
        }
        const secondsMax = watched.isWatched(sessionId) ? watchedReportSeconds : seconds
        const timeout = setTimeout(end, Math.min(seconds, secondsMax) * 1000)
        held.set(sessionId, end)
        socket.once('close', onClose)
        if (socket.destroyed) onClose()
      })
      return (performance.now() - startedAt) / 1000
    },
    countHeld: () => held.size,
    stop: async () => {
      isStopped = true
      for (const sessionId of [...expected.keys()]) endExpectation(sessionId)
      for (const end of [...held.values()]) end()
    },
  }
}

export function registerHeldReportMetrics(registry: Registry, heldReports: HeldReports): void {
  new Gauge({
    name: 'svc_relay_reports_held',
    help: 'Reports of relays with a session that are held open.',
    registers: [registry],
    collect() {
      this.set(heldReports.countHeld())
    },
  })
}
