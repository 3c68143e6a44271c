/** Sends accepted commands on to their actors, behind the answer. What does not get through is sent again by a job. */
import pLimit from 'p-limit'
import type { Database } from '../db/connection.ts'
import { markCommandDelivered, type RelaySessionRow } from '../db/relay-sessions.ts'
import type { Logger } from '../platform/log.ts'
import type { RelaySessionActors } from '../workflows/relay-session-client.ts'

/** Deliveries under way at once, and waiting at most: beyond that the job has them, a few seconds later. */
const underWayMax = 16
const waitingMax = 1000

export interface Deliveries {
  /** Sends at once and returns without waiting. */
  send(session: RelaySessionRow): void
  /** The same, and waits for the actor's answer for `millis` at most. */
  sendAndWait(session: RelaySessionRow, millis: number): Promise<void>
  /** Tells an actor something that a later report or a job would tell it again. */
  tell(what: () => Promise<unknown>): void
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

interface Needs {
  readonly sql: Database
  readonly actors: RelaySessionActors
  readonly log: Logger
}

export function createDeliveries({ sql, actors, log }: Needs): Deliveries {
  const limit = pLimit(underWayMax)
  const underWay = new Set<Promise<void>>()

  const run = (work: () => Promise<unknown>): Promise<void> => {
    if (limit.pendingCount >= waitingMax) return Promise.resolve()
    const done: Promise<void> = limit(work)
      .then(() => undefined)
      .catch((error: unknown) => log.warn({ err: error }, 'not delivered yet'))
      .finally(() => underWay.delete(done))
    underWay.add(done)
    return done
  }

  const deliver = async (session: RelaySessionRow): Promise<void> => {
    // Where no actor was left to tell, the job looks closer at why.
    if (await actors.deliver(session)) await markCommandDelivered(sql, session.id, session.command_seq)
  }

  return {
    send: (session) => void run(() => deliver(session)),
    sendAndWait: async (session, millis) => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, millis)
      })
      await Promise.race([run(() => deliver(session)), late])
      clearTimeout(timer)
    },
    tell: (what) => void run(what),
    settled: async () => {
      await Promise.all(underWay)
    },
  }
}
