/** Which notifications an account gets on which channel. A kind is off on a channel until its owner enables it there. */
import type {
  AccountNotification,
  EndpointType,
  NotificationChannel,
  NotificationKind,
} from '../domain/notifications.ts'
import { type Fragment, first, type Sql } from './connection.ts'

export interface NotificationSetting {
  readonly kind: NotificationKind
  readonly channel: NotificationChannel
}

export const listEnabledNotifications = async (sql: Sql, userId: string): Promise<NotificationSetting[]> =>
  sql<NotificationSetting[]>`select kind, channel from notification_settings where user_id = ${userId}`

/** @returns whether this changed the setting. */
export async function setNotification(
  sql: Sql,
  userId: string,
  { kind, channel }: NotificationSetting,
  isEnabled: boolean,
): Promise<boolean> {
  const { count } = isEnabled
    ? await sql`
        insert into notification_settings (user_id, kind, channel) values (${userId}, ${kind}, ${channel})
        on conflict do nothing`
    : await sql`
        delete from notification_settings where user_id = ${userId} and kind = ${kind} and channel = ${channel}`
  return count > 0
}

/** Whether the account has enabled any notification: part of a statement that reads the account for another reason. */
export const hasNotifications = (sql: Sql, userId: Fragment): Fragment =>
  sql`exists (select from notification_settings n where n.user_id = ${userId})`

/**
 * Enqueues a notification on the channels where the account has enabled it. Runs in the transaction that records the fact.
 */
export type Notify = (sql: Sql, userId: string, notification: AccountNotification) => Promise<void>

export interface Recipients {
  /** The verified address for mails of this kind; null for none. */
  readonly email: string | null
  /** The type of the endpoint for messages of this kind; null for none. */
  readonly endpointType: EndpointType | null
}

/** Where a notification of this kind goes now. */
export const findRecipients = async (
  sql: Sql,
  userId: string,
  kind: NotificationKind,
): Promise<Recipients | undefined> =>
  first(
    await sql<Recipients[]>`
      select
        max(u.email) filter (where s.channel = 'email' and u.email_verified_at is not null) as email,
        max(e.type) filter (where s.channel = 'endpoint' and e.disabled_at is null) as endpoint_type
      from notification_settings s
        join users u on u.id = s.user_id
        left join notification_endpoints e on e.user_id = s.user_id
      where s.user_id = ${userId} and s.kind = ${kind}`,
  )

/** The address of the account; undefined for an account without one. */
export const findNotificationAddress = async (
  sql: Sql,
  userId: string,
): Promise<{ readonly email: string; readonly isVerified: boolean } | undefined> =>
  first(
    await sql<{ email: string; isVerified: boolean }[]>`
      select email, email_verified_at is not null as is_verified from users
      where id = ${userId} and email is not null`,
  )
