/** The messages of the outbox that are notifications of one account. */
import { type NotificationKind, notificationKinds } from '../../domain/notifications/kinds.ts'
import type { MessageChannel } from '../../domain/notifications/outbox.ts'
import { first, type Sql } from '../connection.ts'

export interface DeliveryRow {
  readonly kind: NotificationKind | 'test'
  readonly channel: MessageChannel
  readonly createdAt: Date
  readonly attempts: number
  readonly nextAttemptAt: Date | null
  readonly sentAt: Date | null
  readonly failedAt: Date | null
  readonly lastError: string | null
}

/** The latest ones, newest first. They are kept for as long as ended messages are. */
export const listDeliveries = async (sql: Sql, userId: string, limit: number): Promise<DeliveryRow[]> =>
  sql<DeliveryRow[]>`
    select kind, channel, created_at, attempts, next_attempt_at, sent_at, failed_at, last_error
    from outbox_messages where user_id = ${userId} and kind = any(${[...notificationKinds, 'test']})
    order by created_at desc, id limit ${limit}`

interface RecentNotifications {
  /** On all channels. */
  readonly all: number
  /** Of the kind; on several channels at once it counts once. Each is enqueued in a transaction of its own. */
  readonly ofKind: number
}

/** How many notifications were enqueued for the account in the last hour. */
export const countRecentNotifications = async (
  sql: Sql,
  userId: string,
  kind: NotificationKind,
): Promise<RecentNotifications> =>
  (await first(sql<RecentNotifications[]>`
    select count(*)::int as all, count(distinct created_at) filter (where kind = ${kind})::int as of_kind
    from outbox_messages
    where user_id = ${userId} and kind = any(${[...notificationKinds]}) and created_at > now() - interval '1 hour'`)) ?? {
    all: 0,
    ofKind: 0,
  }
