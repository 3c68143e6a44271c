/**
 * Background work after a reply: delivers accepted commands and signals to workflows. A job repeats what fails here.
 */
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Database } from '../db/connection.ts'
import { type DeliveredCommand, markCommandsDelivered } from '../db/relay/commands.ts'
import { batch } from '../platform/batch.ts'
import type { Logger } from '../platform/log.ts'
import type { RelaySessionAddress, RelaySessionWorkflows } from '../workflows/relay-session-client.ts'

/** Concurrent calls to Temporal that a request waits for, and signals. */
const promptCallsMax = 16
/** Concurrent starts that no request waits for. More would not be faster in total and would delay the prompt calls. */
const backgroundCallsMax = 2
/** With this many starts in progress, the processors are busy with requests that a client waits for. */
const busyStartsMin = 4
/** The longest wait of a delivery for starts, whose number may never fall. Below `deliverAfterSeconds` of the job. */
const yieldMillisMax = 2000
const yieldPollMillis = 10
/** Concurrent calls to other services. A call that hangs may take half a minute. */
const serviceCallsMax = 4
/** Queued calls per kind. Further ones are left to the job, which runs some seconds later. */
const queuedCallsMax = 1000

export interface Deliveries {
  /** Runs the transaction of a start. Deliveries in the background wait for a moment while many of them run. */
  runStart<Outcome>(start: () => Promise<Outcome>): Promise<Outcome>
  /** Delivers the session's last command in the background. */
  send(session: RelaySessionAddress): void
  /** Delivers the session's last command and waits for its workflow, for `millis` at most. */
  sendAndWait(session: RelaySessionAddress, millis: number): Promise<void>
  /** Sends a signal that a later report or a job would repeat. */
  signal(send: () => Promise<unknown>): void
  /**
   * Calls another service. A job repeats the call when it fails. It delays neither deliveries nor the end of the
   * process.
   */
  runInBackground(call: () => Promise<unknown>): void
  /** Resolves when no delivery or signal is in progress. */
  drain(): Promise<void>
}

interface Deps {
  readonly sql: Database
  readonly relaySessions: RelaySessionWorkflows
  readonly log: Logger
}

export function createDeliveries({ sql, relaySessions, log }: Deps): Deliveries {
  const promptCalls = pLimit(promptCallsMax)
  const backgroundCalls = pLimit(backgroundCallsMax)
  const serviceCalls = pLimit(serviceCallsMax)
  const inProgress = new Set<Promise<void>>()

  const run = (limit: typeof promptCalls, call: () => Promise<unknown>): Promise<void> => {
    if (limit.pendingCount >= queuedCallsMax) return Promise.resolve()
    const done: Promise<void> = limit(call)
      .then(() => undefined)
      .catch((error: unknown) => log.warn({ err: error }, 'a delivery failed and is retried by a job'))
      .finally(() => inProgress.delete(done))
    inProgress.add(done)
    return done
  }

  const markDelivered = batch((delivered: DeliveredCommand[]) => markCommandsDelivered(sql, delivered))

  const deliver = async (session: RelaySessionAddress): Promise<void> => {
    // Without a running workflow the command stays undelivered, and the job finds out why.
    if (!(await relaySessions.deliver(session))) return
    // A request that waits for the workflow does not wait for this write. When it fails, the job delivers the command
    // again.
    const marked: Promise<void> = markDelivered({ id: session.id, seq: session.commandSeq })
      .catch((error: unknown) => log.warn({ err: error }, 'a delivered command could not be marked as delivered'))
      .then(() => void inProgress.delete(marked))
    inProgress.add(marked)
  }

  let startsInProgress = 0
  const yieldToStarts = async (acceptedAt: number): Promise<void> => {
    while (startsInProgress >= busyStartsMin && performance.now() < acceptedAt + yieldMillisMax)
      await sleep(yieldPollMillis)
  }

  return {
    runStart: async (start) => {
      startsInProgress += 1
      try {
        return await start()
      } finally {
        startsInProgress -= 1
      }
    },
    send: (session) => {
      const acceptedAt = performance.now()
      void run(backgroundCalls, async () => {
        // The reply is written first.
        await immediate()
        await yieldToStarts(acceptedAt)
        await deliver(session)
      })
    },
    sendAndWait: async (session, millis) => {
      let timer: NodeJS.Timeout | undefined
      const timeout = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, millis)
      })
      await Promise.race([run(promptCalls, () => deliver(session)), timeout])
      clearTimeout(timer)
    },
    signal: (send) => void run(promptCalls, send),
    runInBackground: (call) => {
      if (serviceCalls.pendingCount >= queuedCallsMax) return
      serviceCalls(call).catch((error: unknown) =>
        log.warn({ err: error }, 'a call to another service failed and is retried by a job'),
      )
    },
    drain: async () => {
      // A finished delivery may have added the write that marks it.
      while (inProgress.size > 0) await Promise.all(inProgress)
    },
  }
}
