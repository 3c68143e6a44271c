/** Notifications of the account: what is sent where, what was sent lately, and links that turn one off. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import type { Sql } from '../../../db/connection.ts'
import { listDeliveries } from '../../../db/notifications/deliveries.ts'
import { findEndpoint } from '../../../db/notifications/endpoints.ts'
import {
  findNotificationAddress,
  findStreamDelay,
  listNotificationSettings,
  type NotificationSetting,
  setNotification,
  setStreamDelay,
} from '../../../db/notifications/settings.ts'
import { openUnsubscribeToken } from '../../../db/notifications/unsubscribe-tokens.ts'
import { notificationChannels, notificationKinds } from '../../../domain/notifications/kinds.ts'
import type { Sealing } from '../../../platform/sealing.ts'
import { Refusal } from '../../http/refusals.ts'
import { noContent, ok } from '../../http/replies.ts'
import {
  Channel,
  DeliveryView,
  Kind,
  OverviewView,
  presentDelivery,
  presentEndpoint,
  presentKinds,
  StreamDelaySeconds,
} from '../../views/notification.ts'
import { route } from '../route.ts'

const deliveriesMax = 20

export const show = route.user({
  id: 'getNotificationSettings',
  summary: 'Show the notification settings',
  description: 'What the account is notified of and on which channels, and its webhook without secrets.',
  answers: { 200: OverviewView },
  refuses: [],
  handle: async ({ caller: { userId } }, { sql, sealing }) => {
    const [address, endpoint, settings, delaySeconds] = await Promise.all([
      findNotificationAddress(sql, userId),
      findEndpoint(sql, userId),
      listNotificationSettings(sql, userId),
      findStreamDelay(sql, userId),
    ])
    return ok({
      email: { address: address?.email ?? null, verified: address?.isVerified ?? false },
      endpoint: endpoint ? presentEndpoint(sealing, endpoint) : null,
      kinds: presentKinds(settings),
      stream_delay_seconds: delaySeconds,
    })
  },
})

const Setting = z.object({ kind: Kind, channel: Channel, enabled: z.boolean() })
const settingsMax = notificationKinds.length * notificationChannels.length
const delay = { stream_delay_seconds: StreamDelaySeconds.optional() }

export const change = route.user({
  id: 'changeNotificationSettings',
  summary: 'Change the notification settings',
  description:
    'Enables or disables kinds of notifications on a channel, and sets the delay of those about streams. All of that or nothing is changed. Safe to repeat.',
  body: z.union([
    Setting.extend(delay),
    z.object({ settings: z.array(Setting).min(1).max(settingsMax), ...delay }),
    z.strictObject({ stream_delay_seconds: StreamDelaySeconds }),
  ]),
  answers: { 204: null },
  refuses: ['email_not_verified'],
  handle: async ({ body, caller: { userId }, ip }, { sql }) => {
    const settings = 'settings' in body ? body.settings : 'kind' in body ? [body] : []
    const delaySeconds = body.stream_delay_seconds
    await sql.begin(async (tx) => {
      if (settings.some(({ channel, enabled }) => channel === 'email' && enabled)) await requireAddress(tx, userId)
      for (const { kind, channel, enabled } of settings) await changeSetting(tx, { userId, kind, channel }, enabled, ip)
      if (delaySeconds !== undefined) await changeDelay(tx, userId, delaySeconds, ip)
    })
    return noContent()
  },
})

/** Mail goes to verified addresses only: another person may read an unverified one. */
async function requireAddress(sql: Sql, userId: string): Promise<void> {
  const address = await findNotificationAddress(sql, userId)
  if (!address?.isVerified) throw new Refusal('email_not_verified')
}

type SettingOfUser = NotificationSetting & { readonly userId: string }

async function changeSetting(sql: Sql, setting: SettingOfUser, isEnabled: boolean, ip: string): Promise<void> {
  const { userId, kind, channel } = setting
  if (!(await setNotification(sql, userId, setting, isEnabled))) return
  const action = isEnabled ? 'notification_enabled' : 'notification_disabled'
  await recordAuditEntry(sql, { initiator: 'user', action, userId, ip, detail: { kind, channel } })
}

async function changeDelay(sql: Sql, userId: string, seconds: number, ip: string): Promise<void> {
  if (!(await setStreamDelay(sql, userId, seconds))) return
  const action = 'notification_delay_changed'
  await recordAuditEntry(sql, { initiator: 'user', action, userId, ip, detail: { stream_delay_seconds: seconds } })
}

export const deliveries = route.user({
  id: 'listNotificationDeliveries',
  summary: 'List the last notifications with their delivery',
  description: 'The last notifications of the account and how their delivery went, newest first.',
  answers: { 200: z.object({ deliveries: z.array(DeliveryView) }) },
  refuses: [],
  handle: async ({ caller }, { sql }) => {
    const rows = await listDeliveries(sql, caller.userId, deliveriesMax)
    return ok({ deliveries: rows.map(presentDelivery) })
  },
})

const UnsubscribeToken = z.object({ token: z.string().max(1000) })
const NotificationView = z.object({ kind: Kind, channel: Channel })

export const previewUnsubscribe = route.none({
  id: 'previewUnsubscribe',
  summary: 'Show what an unsubscribe link turns off',
  description: 'Shows which notification the token of a link turns off. Changes nothing.',
  body: UnsubscribeToken,
  answers: { 200: NotificationView },
  refuses: ['token_invalid'],
  handle: ({ body }, { sealing }) => {
    const { kind, channel } = readToken(sealing, body.token)
    return ok({ kind, channel })
  },
})

export const unsubscribe = route.none({
  id: 'unsubscribe',
  summary: 'Turn a notification off with a mailed link',
  description: 'Turns one notification off with the token of a link, without a sign-in. Safe to repeat.',
  body: UnsubscribeToken,
  answers: { 200: NotificationView },
  refuses: ['token_invalid'],
  handle: async ({ body, ip }, { sql, sealing }) => {
    const setting = readToken(sealing, body.token)
    await sql.begin((tx) => changeSetting(tx, setting, false, ip))
    return ok({ kind: setting.kind, channel: setting.channel })
  },
})

/** Refuses with `token_invalid`. */
function readToken(sealing: Sealing, token: string): SettingOfUser {
  const setting = openUnsubscribeToken(sealing, token)
  if (!setting) throw new Refusal('token_invalid')
  return setting
}
