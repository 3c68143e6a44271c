/** The jobs that send the messages of the outbox, each through the delivery of its channel. */
import type { Database } from '../../db/connection.ts'
import {
  type LeasedMessage,
  leaseDueMessages,
  openMessage,
  recordMessageFailure,
  recordMessageSent,
} from '../../db/notifications/outbox.ts'
import {
  type Deliver,
  type MessageChannel,
  RetryLaterError,
  UndeliverableError,
} from '../../domain/notifications/outbox.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { Job } from '../worker/jobs.ts'

export interface OutboxJobDeps {
  readonly sql: Database
  readonly log: Logger
  readonly sealing: Sealing
  /** A message of a channel without one waits. */
  readonly deliveries: Readonly<Partial<Record<MessageChannel, Deliver>>>
  /** Whether sent mails stay readable, for the mailbox. */
  readonly keepsMails: boolean
  /** Of one attempt; by default well within the lease of its message and the stop of the worker. */
  readonly attemptMillisMax?: number
}

const defaultAttemptMillisMax = 12_000
/** Messages of one batch, which are attempted concurrently. */
const batchMessages = 16
/** No batch begins later than this in a run. */
const runMillisMax = 15_000

/** One job for each channel, so that none waits for a slow recipient of another. */
export function outboxJobs(deps: OutboxJobDeps): readonly Job[] {
  const jobs = [
    { channel: 'email', name: 'deliver_mails', everySeconds: 1 },
    { channel: 'webhook', name: 'deliver_webhooks', everySeconds: 1 },
    { channel: 'discord', name: 'deliver_discord_messages', everySeconds: 1 },
  ] as const
  return jobs.flatMap(({ channel, name, everySeconds }) => {
    const deliver = deps.deliveries[channel]
    if (!deliver) return []
    const run = (signal?: AbortSignal) => deliverMessages(deps, channel, deliver, signal)
    return [{ name, everySeconds, runSecondsMax: 60, run }]
  })
}

async function deliverMessages(
  deps: OutboxJobDeps,
  channel: MessageChannel,
  deliver: Deliver,
  signal?: AbortSignal,
): Promise<void> {
  const until = Date.now() + runMillisMax
  while (!signal?.aborted && Date.now() < until) {
    const messages = await leaseDueMessages(deps.sql, channel, batchMessages)
    await Promise.all(messages.map((message) => attempt(deps, channel, deliver, message)))
    if (messages.length < batchMessages) return
  }
}

async function attempt(
  { sql, log, sealing, keepsMails, attemptMillisMax = defaultAttemptMillisMax }: OutboxJobDeps,
  channel: MessageChannel,
  deliver: Deliver,
  message: LeasedMessage,
): Promise<void> {
  const { id, kind } = message
  try {
    await deliver({ id, kind, content: openMessage(sealing, message) }, AbortSignal.timeout(attemptMillisMax))
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const isPermanent = error instanceof UndeliverableError
    const retryAfterSeconds = error instanceof RetryLaterError ? error.afterSeconds : 0
    const hasFailed = await recordMessageFailure(sql, id, { error: text, isPermanent, retryAfterSeconds })
    const fields = { channel, kind, message_id: id, attempts: message.attempts, problem: text }
    if (hasFailed) log.error(fields, 'a message could not be delivered and was given up')
    else log.warn(fields, 'a message could not be delivered; it is retried')
    return
  }
  await recordMessageSent(sql, id, channel === 'email' && keepsMails)
}
