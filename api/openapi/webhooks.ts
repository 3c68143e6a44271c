/** The requests that the service sends to the webhook of an account, one entry per kind of notification. */
import { z } from 'zod'
import { subscriptionKinds } from '../../domain/billing/plans.ts'
import { usageNoticePercents } from '../../domain/billing/usage-cycle.ts'
import { type Notification, notificationPath } from '../../domain/notifications/kinds.ts'
import { initiators, lossCauses, relayReasons, sessionDetails } from '../../domain/relay/session.ts'
import { toWebhookPayload } from '../../providers/webhooks/endpoint-delivery.ts'
import type { SchemaConverter } from './schemas.ts'

type Kind = Notification['kind']
type DataOf<K extends Kind, N = Notification> = N extends { kind: infer NK; data: infer D }
  ? K extends NK
    ? D
    : never
  : never

const Timestamp = z.string().meta({ format: 'date-time' })
const session = { session_id: z.uuid(), connection_id: z.string(), region: z.string() }
const cause = { reason: z.enum(relayReasons), initiator: z.enum(initiators) }

const ContactLost = z.object({ ...session, grace_ends_at: Timestamp })
const Replaced = z.object({
  ...session,
  failed_at: Timestamp.describe('When the lost relay failed.'),
  away_seconds: z.number().min(0).describe('From then until another relay had taken over.'),
  cause: z.enum(lossCauses),
})
const EndingSoon = z.object({
  ...session,
  idle_ends_at: Timestamp.describe('From this time on it is stopped when no stream has come in for ten minutes.'),
  ends_at: Timestamp.describe('When it is stopped even while it is in use.'),
})
const Ended = z.object({
  ...session,
  ...cause,
  cause: z.object(cause).nullable().describe('The transition to the grace in which it ended, or null.'),
  detail: z
    .enum(sessionDetails)
    .nullable()
    .describe('Why it could not be started, or was given up, where it is known.'),
  created_at: Timestamp,
})
const moment = { ...session, at: Timestamp.describe('When it happened.') }
const bitrate = { bitrate_kbps: z.number().int().min(0).describe('At that time.') }
const StreamLost = z.object(moment)
const StreamRecovered = z.object({
  ...moment,
  ...bitrate,
  lost_at: Timestamp.describe('When the loss began.'),
  away_seconds: z.number().min(0).describe('From then until video came in again.'),
})
const StreamWeak = z.object({ ...moment, ...bitrate })
const PaymentFailed = z.object({
  subscriptions: z.array(z.enum(subscriptionKinds)),
  ends_at: Timestamp.nullable().describe('When access ends without a payment. Null when this failure ends none.'),
})
const PlanEnding = z.object({ ends_at: Timestamp })
const RelaysSurplus = z.object({ connection_ids: z.array(z.string()), ends_at: Timestamp })
const UsageReached = z.object({
  percent: z.literal(usageNoticePercents),
  consumed_seconds: z.number().int().min(0),
  included_seconds: z.number().int().min(0),
  cycle_start: Timestamp,
  cycle_end: Timestamp,
})

const dataSchemas = {
  relay_contact_lost: ContactLost,
  relay_replaced: Replaced,
  relay_ending_soon: EndingSoon,
  relay_ended: Ended,
  stream_lost: StreamLost,
  stream_recovered: StreamRecovered,
  stream_weak: StreamWeak,
  payment_failed: PaymentFailed,
  plan_ending: PlanEnding,
  relays_surplus: RelaysSurplus,
  usage_80: UsageReached,
  usage_95: UsageReached,
  usage_100: UsageReached,
  test: z.object({}),
} as const satisfies { readonly [K in Kind]: z.ZodType<DataOf<K>> }

const at = '2026-08-01T18:30:00.000Z'
const sampleSession = {
  session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04',
  connection_id: 'default',
  region: 'eu-central',
}

const usageReached = <P extends 80 | 95 | 100>(percent: P) => ({
  kind: `usage_${percent}` as const,
  timestamp: at,
  data: {
    percent,
    consumed_seconds: percent * 7200,
    included_seconds: 720_000,
    cycle_start: '2026-07-15T00:00:00.000Z',
    cycle_end: '2026-08-15T00:00:00.000Z',
  },
})

const samples: { readonly [K in Kind]: { readonly summary: string; readonly notification: Notification } } = {
  relay_contact_lost: {
    summary: 'A relay stops reporting',
    notification: {
      kind: 'relay_contact_lost',
      timestamp: at,
      data: { ...sampleSession, grace_ends_at: '2026-08-01T18:32:00.000Z' },
    },
  },
  relay_replaced: {
    summary: 'A relay failed and another one has taken over',
    notification: {
      kind: 'relay_replaced',
      timestamp: at,
      data: { ...sampleSession, failed_at: '2026-08-01T18:29:54.000Z', away_seconds: 6, cause: 'relay_gone' },
    },
  },
  relay_ending_soon: {
    summary: 'A relay has run for so long that it may soon be stopped',
    notification: {
      kind: 'relay_ending_soon',
      timestamp: at,
      data: { ...sampleSession, idle_ends_at: '2026-08-01T19:30:00.000Z', ends_at: '2026-08-02T03:30:00.000Z' },
    },
  },
  relay_ended: {
    summary: 'A relay ends without a request of its user',
    notification: {
      kind: 'relay_ended',
      timestamp: at,
      data: {
        ...sampleSession,
        reason: 'grace_elapsed',
        initiator: 'timer',
        cause: { reason: 'health_lost', initiator: 'system' },
        detail: null,
        created_at: '2026-08-01T18:00:00.000Z',
      },
    },
  },
  stream_lost: {
    summary: 'No video has come in for as long as the account chose',
    notification: { kind: 'stream_lost', timestamp: at, data: { ...sampleSession, at } },
  },
  stream_recovered: {
    summary: 'Video comes in again after a loss that was notified',
    notification: {
      kind: 'stream_recovered',
      timestamp: at,
      data: { ...sampleSession, at, bitrate_kbps: 4200, lost_at: '2026-08-01T18:28:30.000Z', away_seconds: 90 },
    },
  },
  stream_weak: {
    summary: 'Little video has come in for as long as the account chose',
    notification: { kind: 'stream_weak', timestamp: at, data: { ...sampleSession, at, bitrate_kbps: 380 } },
  },
  payment_failed: {
    summary: 'A payment fails',
    notification: {
      kind: 'payment_failed',
      timestamp: at,
      data: { subscriptions: ['plan'], ends_at: '2026-08-03T18:30:00.000Z' },
    },
  },
  plan_ending: {
    summary: 'A plan ends within three days',
    notification: { kind: 'plan_ending', timestamp: at, data: { ends_at: '2026-08-04T18:30:00.000Z' } },
  },
  relays_surplus: {
    summary: 'More relays run than the plan includes',
    notification: {
      kind: 'relays_surplus',
      timestamp: at,
      data: { connection_ids: ['backup'], ends_at: '2026-08-01T19:00:00.000Z' },
    },
  },
  usage_80: { summary: '80 % of the relay time is used', notification: usageReached(80) },
  usage_95: { summary: '95 % of the relay time is used', notification: usageReached(95) },
  usage_100: { summary: 'All relay time is used', notification: usageReached(100) },
  test: {
    summary: 'The user asks for a test',
    notification: { kind: 'test', timestamp: at, data: {} },
  },
}

const signatureHeaders = {
  'webhook-id': 'The id of the message, the same in all attempts. A receiver ignores an id that it has seen.',
  'webhook-timestamp': 'When this attempt was made, in seconds since 1970.',
  'webhook-signature': '`v1,` and the signature of Standard Webhooks 1.0, made with the secret of the endpoint.',
}

/** The schema of the body of a webhook of one kind. */
export const webhookBody = (kind: Kind) =>
  z.object({
    type: z.literal(kind),
    timestamp: Timestamp.describe('When it happened.'),
    data: dataSchemas[kind],
    title: z.string(),
    text: z.string().describe('The same in words, as plain text.'),
    url: z.url().describe('The page of the site that it is about.'),
    unsubscribe_url: z.url().nullable().describe('Turns this kind of notification off. Null for a test.'),
  })

/** The member `webhooks` of the OpenAPI document. */
export const describeWebhooks = (converter: SchemaConverter): Record<string, object> =>
  Object.fromEntries((Object.keys(samples) as Kind[]).map((kind) => [kind, { post: describe(kind, converter) }]))

function describe(kind: Kind, converter: SchemaConverter): object {
  const { summary, notification } = samples[kind]
  return {
    operationId: operationIdOf(kind),
    summary,
    description:
      'Sent to the webhook of the account, with growing pauses for 24 hours until a reply in 2xx. 410 disables the webhook.',
    tags: ['Notifications'],
    security: [],
    parameters: Object.entries(signatureHeaders).map(([name, description]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: converter.convert(webhookBody(kind)),
          examples: { example: { summary, value: sampleBody(notification) } },
        },
      },
    },
    responses: { '2XX': { description: 'The message was received' }, '410': { description: 'Send no more messages' } },
  }
}

/** `relay_ended` becomes `receiveRelayEnded`. */
const operationIdOf = (kind: Kind): string =>
  `receive${kind.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}`

const sampleBody = (notification: Notification) =>
  toWebhookPayload({
    notification,
    link: `https://relay.example${notificationPath(notification)}`,
    unsubscribeLink: notification.kind === 'test' ? null : 'https://relay.example/notifications/off?token=example',
  })
