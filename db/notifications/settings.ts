/** Which notifications an account gets on which channel. Only what differs from the default of the kind is stored. */
import {
  type AccountNotification,
  type EndpointType,
  isOnByDefault,
  type NotificationChannel,
  type NotificationKind,
} from '../../domain/notifications/kinds.ts'
import { streamDelaySeconds } from '../../domain/notifications/stream-notices.ts'
import { type Fragment, first, firstValue, type Sql } from '../connection.ts'

export interface NotificationSetting {
  readonly kind: NotificationKind
  readonly channel: NotificationChannel
}

interface StoredSetting extends NotificationSetting {
  readonly enabled: boolean
}

/** What the account has chosen. Anything else has the default of its kind. */
export const listNotificationSettings = async (sql: Sql, userId: string): Promise<StoredSetting[]> =>
  sql<StoredSetting[]>`select kind, channel, enabled from notification_settings where user_id = ${userId}`

/** @returns whether this changed what the account gets. */
export async function setNotification(
  sql: Sql,
  userId: string,
  { kind, channel }: NotificationSetting,
  isEnabled: boolean,
): Promise<boolean> {
  const { count } =
    isEnabled === isOnByDefault(kind, channel)
      ? await sql`
          delete from notification_settings
          where user_id = ${userId} and kind = ${kind} and channel = ${channel} and enabled <> ${isEnabled}`
      : await sql`
          insert into notification_settings as s (user_id, kind, channel, enabled)
          values (${userId}, ${kind}, ${channel}, ${isEnabled})
          on conflict (user_id, kind, channel) do update set enabled = excluded.enabled, enabled_at = now()
          where s.enabled <> excluded.enabled`
  return count > 0
}

/** Gives the account the defaults again. */
export const deleteNotificationSettings = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from notification_settings where user_id = ${userId}`
  await setStreamDelay(sql, userId, streamDelaySeconds.default)
}

/** For how many seconds a stream has to be lost or weak before the account is notified. */
export const findStreamDelay = async (sql: Sql, userId: string): Promise<number> =>
  (await firstValue(sql<{ seconds: number }[]>`
    select stream_delay_seconds as seconds from users where id = ${userId}`)) ?? streamDelaySeconds.default

/** Counts for what waits already too. @returns whether this changed it. */
export async function setStreamDelay(sql: Sql, userId: string, seconds: number): Promise<boolean> {
  const { count } = await sql`
    update users set stream_delay_seconds = ${seconds} where id = ${userId} and stream_delay_seconds <> ${seconds}`
  if (count > 0)
    await sql`
      update stream_notices n set due_at = now() from relay_sessions s
      where s.user_id = ${userId} and s.state <> 'stopped' and n.session_id = s.id`
  return count > 0
}

/**
 * Whether the account has enabled any notification: part of a statement that reads the account for another reason.
 * Kinds that are on by default need no such row.
 */
export const hasEnabledNotifications = (sql: Sql, userId: Fragment): Fragment =>
  sql`exists (select from notification_settings n where n.user_id = ${userId} and n.enabled)`

/**
 * Enqueues a notification on the channels where it is on. Runs in the transaction that records the fact.
 * @returns whether it is sent on any channel.
 */
export type Notify = (sql: Sql, userId: string, notification: AccountNotification) => Promise<boolean>

interface Recipients {
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
  first(sql<Recipients[]>`
    select case when u.email_verified_at is not null and ${isOn(sql, kind, 'email')} then u.email end as email,
      case when e.disabled_at is null and ${isOn(sql, kind, 'endpoint')} then e.type end as endpoint_type
    from users u left join notification_endpoints e on e.user_id = u.id
    where u.id = ${userId}`)

/** For `users u`. */
const isOn = (sql: Sql, kind: NotificationKind, channel: NotificationChannel): Fragment => sql`coalesce((
  select enabled from notification_settings s where s.user_id = u.id and s.kind = ${kind} and s.channel = ${channel}),
  ${isOnByDefault(kind, channel)})`

/** The address of the account; undefined for an account without one. */
export const findNotificationAddress = async (
  sql: Sql,
  userId: string,
): Promise<{ readonly email: string; readonly isVerified: boolean } | undefined> =>
  first(sql<{ email: string; isVerified: boolean }[]>`
    select email, email_verified_at is not null as is_verified from users
    where id = ${userId} and email is not null`)
