/** Enqueues the notifications that are on for an account. */

import type { Sql } from '../../db/connection.ts'
import { countRecentNotifications } from '../../db/notifications/deliveries.ts'
import { enqueueMessage } from '../../db/notifications/outbox.ts'
import { findRecipients, type Notify } from '../../db/notifications/settings.ts'
import { createUnsubscribeToken } from '../../db/notifications/unsubscribe-tokens.ts'
import {
  type AccountNotification,
  isAboutStream,
  isUnlimited,
  type NotificationChannel,
  type NotificationKind,
  notificationPath,
  notificationsPerHourMax,
  streamNotificationsPerHourMax,
} from '../../domain/notifications/kinds.ts'
import { describeNotification, plainFormat } from '../../domain/notifications/texts.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { NotificationMail } from '../../providers/mail/mail.ts'
import type { EndpointMessage } from '../../providers/webhooks/endpoint-delivery.ts'

interface Deps {
  readonly sealing: Sealing
  readonly siteUrl: string
}

/** Runs in the transaction that records the fact, so that a fact which is recorded once is notified once. */
export const createNotify =
  ({ sealing, siteUrl }: Deps): Notify =>
  async (sql, userId, notification) => {
    const { kind } = notification
    const { email = null, endpointType = null } = (await findRecipients(sql, userId, kind)) ?? {}
    if (email === null && endpointType === null) return false
    if (!isUnlimited(kind) && (await isLimitReached(sql, userId, kind))) return false
    const link = siteUrl + notificationPath(notification)
    const unsubscribeLink = (channel: NotificationChannel) =>
      `${siteUrl}/notifications/off?token=${createUnsubscribeToken(sealing, { userId, kind, channel })}`
    if (email !== null) {
      const { title, paragraphs } = describeNotification(notification, plainFormat)
      const content: NotificationMail = {
        subject: 'notification',
        to: email,
        title,
        paragraphs,
        link,
        linkText: linkTexts[kind],
        unsubscribeLink: unsubscribeLink('email'),
      }
      await enqueueMessage(sql, sealing, { userId, channel: 'email', kind, content })
    }
    if (endpointType !== null) {
      const content: EndpointMessage = { userId, notification, link, unsubscribeLink: unsubscribeLink('endpoint') }
      await enqueueMessage(sql, sealing, { userId, channel: endpointType, kind, content })
    }
    return true
  }

async function isLimitReached(sql: Sql, userId: string, kind: NotificationKind): Promise<boolean> {
  const { all, ofKind } = await countRecentNotifications(sql, userId, kind)
  return all >= notificationsPerHourMax || (isAboutStream(kind) && ofKind >= streamNotificationsPerHourMax)
}

const linkTexts: Readonly<Record<AccountNotification['kind'], string>> = {
  relay_contact_lost: 'See your relays',
  relay_replaced: 'See your relays',
  relay_ending_soon: 'See your relays',
  relay_ended: 'See what happened',
  stream_lost: 'See what happened',
  stream_recovered: 'See what happened',
  stream_weak: 'See what happened',
  payment_failed: 'See your plan',
  plan_ending: 'See your plan',
  relays_surplus: 'See your relays',
  usage_80: 'See your usage',
  usage_95: 'See your usage',
  usage_100: 'See your usage',
}
