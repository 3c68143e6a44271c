/**
 * Outbox of messages to users. A message is enqueued in the transaction that causes it, so that neither exists without
 * the other. Its content may contain a secret, such as a link, and is sealed for its row. All times are those of the
 * database.
 */
import { randomUUID } from 'node:crypto'
import type { MessageChannel } from '../../domain/notifications/outbox.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { backoffSeconds } from '../backoff.ts'
import type { Sql } from '../connection.ts'

/** A message that could not be delivered for this long is given up. */
const ageHoursMax = 24
const backoff = { firstSeconds: 5, secondsMax: 3600 }
/** Longer than an attempt takes. Afterwards the message is due again, since its worker must have died. */
const leaseSeconds = 60

interface NewMessage {
  /** The account that it is about; null for none. Its messages are deleted with it. */
  readonly userId: string | null
  readonly channel: MessageChannel
  readonly kind: string
  readonly content: object
}

const contentPlace = (id: string) => [id, 'outbox_content']

/** Runs in the caller's transaction. @returns the id of the message. */
export async function enqueueMessage(
  sql: Sql,
  sealing: Sealing,
  { userId, channel, kind, content }: NewMessage,
): Promise<string> {
  const id = randomUUID()
  const sealed = Buffer.from(sealing.seal(JSON.stringify(content), contentPlace(id)))
  await sql`
    insert into outbox_messages (id, user_id, channel, kind, content) values (${id}, ${userId}, ${channel}, ${kind}, ${sealed})`
  return id
}

interface StoredMessage {
  readonly id: string
  readonly content: Buffer
}

/** Throws if the content was sealed with an unknown key. */
export const openMessage = (sealing: Sealing, { id, content }: StoredMessage): unknown =>
  JSON.parse(sealing.open(content.toString(), contentPlace(id)).text)

/** The content, sealed with the current key. */
export const resealMessage = (sealing: Sealing, { id, content }: StoredMessage): Buffer =>
  Buffer.from(sealing.seal(sealing.open(content.toString(), contentPlace(id)).text, contentPlace(id)))

export interface LeasedMessage extends StoredMessage {
  readonly kind: string
  readonly attempts: number
}

/** Leases due messages to the caller, the most overdue first, and counts the attempt that follows. */
export const leaseDueMessages = async (sql: Sql, channel: MessageChannel, limit: number): Promise<LeasedMessage[]> =>
  sql<LeasedMessage[]>`
    update outbox_messages set attempts = attempts + 1, next_attempt_at = now() + make_interval(secs => ${leaseSeconds})
    where id = any (array(
      select id from outbox_messages where channel = ${channel} and next_attempt_at <= now()
      order by next_attempt_at limit ${limit} for update skip locked))
    returning id, kind, content, attempts`

/** @param keepsContent whether the content stays readable, for the mailbox. */
export const recordMessageSent = async (sql: Sql, id: string, keepsContent: boolean): Promise<void> => {
  await sql`
    update outbox_messages set sent_at = now(), next_attempt_at = null, last_error = null,
      content = case when ${keepsContent} then content end
    where id = ${id} and next_attempt_at is not null`
}

interface MessageFailure {
  /** Without secrets. */
  readonly error: string
  readonly isPermanent: boolean
  /** How long the recipient asks to wait; 0 if it does not. */
  readonly retryAfterSeconds: number
}

/**
 * Schedules the next attempt, or gives the message up after {@link ageHoursMax}.
 * @returns whether it is given up.
 */
export const recordMessageFailure = async (
  sql: Sql,
  id: string,
  { error, isPermanent, retryAfterSeconds }: MessageFailure,
): Promise<boolean> => {
  const isGivenUp = sql`(${isPermanent} or created_at < now() - make_interval(hours => ${ageHoursMax}))`
  const rows = await sql<{ hasFailed: boolean }[]>`
    update outbox_messages set last_error = ${error},
      failed_at = case when ${isGivenUp} then now() end,
      content = case when ${isGivenUp} then null else content end,
      next_attempt_at = case when ${isGivenUp} then null else
        now() + make_interval(secs => greatest(${retryAfterSeconds}::float8,
          ${backoffSeconds(sql, sql`attempts - 1`, backoff)})) end
    where id = ${id} and next_attempt_at is not null
    returning failed_at is not null as has_failed`
  return rows[0]?.hasFailed ?? false
}

interface OutboxFigures {
  readonly channel: MessageChannel
  readonly pending: number
  /** Given up in the last 24 hours. */
  readonly failed: number
  /** Of the oldest pending message; 0 without any. */
  readonly oldestSeconds: number
}

/** Channels without messages are left out. */
export const readOutboxFigures = async (sql: Sql): Promise<OutboxFigures[]> =>
  sql<OutboxFigures[]>`
    select channel, count(*) filter (where failed_at is null)::int as pending, count(failed_at)::int as failed,
      coalesce(extract(epoch from now() - min(created_at) filter (where failed_at is null)), 0)::float8 as oldest_seconds
    from outbox_messages
    where next_attempt_at is not null or failed_at > now() - interval '24 hours'
    group by channel`
