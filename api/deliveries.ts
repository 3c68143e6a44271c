/** Sends accepted commands on to their actors, behind the answer. What does not get through is sent again by a job. */
import pLimit from 'p-limit'
import type { Database } from '../db/connection.ts'
import { type DeliveredCommand, markCommandsDelivered, type RelaySessionRow } from '../db/relay-sessions.ts'
import { batch } from '../platform/batch.ts'
import type { Logger } from '../platform/log.ts'
import type { RelaySessionActors } from '../workflows/relay-session-client.ts'

/** Calls under way at once for those who wait, and to carry edges. */
const underWayMax = 16
/** Starts nobody waits for: a few at a time are about as fast in all, and leave the machine to those who want an answer. */
const behindMax = 2
/** Questions to others under way at once: each may take half a minute when they hang. */
const questionsMax = 4
/** Waiting at most: beyond that the job has them, a few seconds later. */
const waitingMax = 1000

export interface Deliveries {
  /** Sends at once and returns without waiting. */
  send(session: RelaySessionRow): void
  /** The same, and waits for the actor's answer for `millis` at most. */
  sendAndWait(session: RelaySessionRow, millis: number): Promise<void>
  /** Tells an actor something that a later report or a job would tell it again. */
  tell(what: () => Promise<unknown>): void
  /**
   * Asks another service what an accepted event leaves out, which a job would do again. It holds up neither the others nor the
   * end of the process.
   */
  ask(what: () => Promise<unknown>): void
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

interface Needs {
  readonly sql: Database
  readonly actors: RelaySessionActors
  readonly log: Logger
}

export function createDeliveries({ sql, actors, log }: Needs): Deliveries {
  const promptly = pLimit(underWayMax)
  const behind = pLimit(behindMax)
  const questions = pLimit(questionsMax)
  const underWay = new Set<Promise<void>>()

  const run = (limit: typeof behind, work: () => Promise<unknown>): Promise<void> => {
    if (limit.pendingCount >= waitingMax) return Promise.resolve()
    const done: Promise<void> = limit(work)
      .then(() => undefined)
      .catch((error: unknown) => log.warn({ err: error }, 'not delivered yet'))
      .finally(() => underWay.delete(done))
    underWay.add(done)
    return done
  }

  const mark = batch((marks: DeliveredCommand[]) => markCommandsDelivered(sql, marks))

  /** Whoever waits for the actor's answer does not wait for the note of it too: without the note a job sends it again. */
  const deliver = async (session: RelaySessionRow): Promise<void> => {
    // Where no actor was left to tell, the job looks closer at why.
    if (!(await actors.deliver(session))) return
    const noted: Promise<void> = mark({ id: session.id, seq: session.commandSeq })
      .catch((error: unknown) => log.warn({ err: error }, 'delivered, but not noted'))
      .then(() => void underWay.delete(noted))
    underWay.add(noted)
  }

  return {
    send: (session) => void run(behind, () => deliver(session)),
    sendAndWait: async (session, millis) => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, millis)
      })
      await Promise.race([run(promptly, () => deliver(session)), late])
      clearTimeout(timer)
    },
    tell: (what) => void run(promptly, what),
    ask: (what) => {
      if (questions.pendingCount >= waitingMax) return
      questions(what).catch((error: unknown) => log.warn({ err: error }, 'not answered yet'))
    },
    settled: async () => {
      // What is delivered is still to be noted.
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}
