/** Notification settings, the endpoint and the last deliveries as their owner sees them. */
import { z } from 'zod'
import type { DeliveryRow } from '../../db/notifications/deliveries.ts'
import { openEndpoint, type StoredEndpoint } from '../../db/notifications/endpoints.ts'
import type { listNotificationSettings } from '../../db/notifications/settings.ts'
import {
  endpointDisabledReasons,
  endpointTypes,
  isOnByDefault,
  type NotificationChannel,
  type NotificationKind,
  notificationChannels,
  notificationKinds,
} from '../../domain/notifications/kinds.ts'
import { messageChannels } from '../../domain/notifications/outbox.ts'
import { streamDelaySeconds } from '../../domain/notifications/stream-notices.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { present } from '../http/present.ts'
import { timestamp } from '../http/schemas.ts'

export const Kind = z.enum(notificationKinds)
export const Channel = z
  .enum(notificationChannels)
  .describe('`email` is the verified address of the account, `endpoint` its webhook or Discord channel.')

export const StreamDelaySeconds = z
  .int()
  .min(streamDelaySeconds.min)
  .max(streamDelaySeconds.max)
  .describe('`stream_lost` and `stream_weak` are sent when the stream has been lost or weak for this long.')

export const EndpointView = z.object({
  type: z.enum(endpointTypes),
  masked_url: z.string().describe('The host and the last characters. The rest may be a secret.'),
  created_at: timestamp,
  disabled_at: timestamp.nullable().describe('Nothing is sent to a disabled endpoint. Saving it again enables it.'),
  disabled_reason: z
    .enum(endpointDisabledReasons)
    .nullable()
    .describe('`gone`: it answered that it is gone. `failing`: every attempt of three days failed.'),
})

export const OverviewView = z.object({
  email: z.object({ address: z.string().nullable(), verified: z.boolean() }),
  endpoint: EndpointView.nullable(),
  kinds: z.array(z.object({ kind: Kind, email: z.boolean(), endpoint: z.boolean() })),
  stream_delay_seconds: StreamDelaySeconds,
})

export const DeliveryView = z.object({
  kind: z.enum([...notificationKinds, 'test']),
  channel: z.enum(messageChannels),
  created_at: timestamp,
  state: z.enum(['pending', 'sent', 'failed']).describe('`failed` is final; a failed attempt leaves it `pending`.'),
  attempts: z.int(),
  next_attempt_at: timestamp.nullable(),
  sent_at: timestamp.nullable(),
  error: z.string().nullable().describe('Of the last attempt, in words.'),
})

type StoredSettings = Awaited<ReturnType<typeof listNotificationSettings>>

export const presentKinds = (stored: StoredSettings): z.infer<typeof OverviewView>['kinds'] => {
  const isOn = (kind: NotificationKind, channel: NotificationChannel) =>
    stored.find((choice) => choice.kind === kind && choice.channel === channel)?.enabled ?? isOnByDefault(kind, channel)
  return notificationKinds.map((kind) => ({ kind, email: isOn(kind, 'email'), endpoint: isOn(kind, 'endpoint') }))
}

export const presentEndpoint = (sealing: Sealing, endpoint: StoredEndpoint): z.infer<typeof EndpointView> =>
  present(EndpointView, { ...endpoint, maskedUrl: maskUrl(openEndpoint(sealing, endpoint).url) })

/** Paths that are too short to hide most of are hidden as a whole. */
function maskUrl(text: string): string {
  const { origin, pathname, search } = new URL(text)
  const rest = pathname + search
  if (rest === '/') return origin
  return `${origin}/…${rest.length >= 16 ? rest.slice(-4) : ''}`
}

export const presentDelivery = (row: DeliveryRow): z.infer<typeof DeliveryView> =>
  present(DeliveryView, {
    ...row,
    state: row.sentAt ? 'sent' : row.failedAt ? 'failed' : 'pending',
    // The texts of a mail server are meant for the service's operators.
    error:
      row.lastError !== null && row.channel === 'email' ? 'The mail server did not accept the mail.' : row.lastError,
  })
