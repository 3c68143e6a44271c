/** Notifications: what an account's owner can be notified of, where, and the facts that each notification states. */
import type { SubscriptionKind } from '../billing/plans.ts'
import type { UsageNoticePercent } from '../billing/usage-cycle.ts'
import type { Initiator, LossCause, RelayReason, SessionDetail } from '../relay/session.ts'
import { streamNoticeKinds } from './stream-notices.ts'

export const notificationKinds = [
  'relay_contact_lost',
  'relay_replaced',
  'relay_ending_soon',
  'relay_ended',
  'stream_lost',
  'stream_recovered',
  'stream_weak',
  'payment_failed',
  'plan_ending',
  'relays_surplus',
  'usage_80',
  'usage_95',
  'usage_100',
] as const
export type NotificationKind = (typeof notificationKinds)[number]

/** `endpoint` is the account's one address for messages, of either type. */
export const notificationChannels = ['email', 'endpoint'] as const
export type NotificationChannel = (typeof notificationChannels)[number]

/** What costs its owner the plan, or relays in use, because of a payment. */
const billingKinds: readonly NotificationKind[] = ['payment_failed', 'plan_ending', 'relays_surplus']

/**
 * Whether a kind is on for an account that has chosen nothing: by email, what costs a stream or a plan unless its owner
 * acts.
 */
export const isOnByDefault = (kind: NotificationKind, channel: NotificationChannel): boolean =>
  channel === 'email' && (kind === 'relay_ending_soon' || isUnlimited(kind))

/**
 * Whether each notification of a kind is sent, also beyond {@link notificationsPerHourMax}: payments are few, and cost
 * the plan.
 */
export const isUnlimited = (kind: NotificationKind): boolean => billingKinds.includes(kind)

/** A plan's end is notified when it is this close. */
export const planEndingHours = 72

export const endpointTypes = ['webhook', 'discord'] as const
export type EndpointType = (typeof endpointTypes)[number]

/** Why messages are no longer sent to an endpoint: it answered that it is gone, or every attempt failed for days. */
export const endpointDisabledReasons = ['gone', 'failing'] as const
export type EndpointDisabledReason = (typeof endpointDisabledReasons)[number]

/** An ISO 8601 time in UTC. */
type Timestamp = string

/** The relay session that a notification is about. Neither its address nor a token of it is ever stated. */
export interface NotifiedSession {
  readonly session_id: string
  readonly connection_id: string
  readonly region: string
}

/** When the stream of a session was lost, weak or back. */
interface StreamMoment extends NotifiedSession {
  readonly at: Timestamp
}

/** What the transition to the grace that an end followed was caused by. */
export interface EndCause {
  readonly reason: RelayReason
  readonly initiator: Initiator
}

/** A field of `data` is part of the contract with receivers of webhooks: docs/notifications.md. */
export type Notification =
  | {
      readonly kind: 'relay_contact_lost'
      readonly timestamp: Timestamp
      readonly data: NotifiedSession & { readonly grace_ends_at: Timestamp }
    }
  | {
      readonly kind: 'relay_replaced'
      readonly timestamp: Timestamp
      readonly data: NotifiedSession & {
        /** When the lost relay failed, and for how long the session was without one. */
        readonly failed_at: Timestamp
        readonly away_seconds: number
        readonly cause: LossCause
      }
    }
  | {
      readonly kind: 'relay_ending_soon'
      readonly timestamp: Timestamp
      readonly data: NotifiedSession & {
        /** From this time on it is stopped when no stream comes in. */
        readonly idle_ends_at: Timestamp
        /** When it is stopped even while it is in use. */
        readonly ends_at: Timestamp
      }
    }
  | {
      readonly kind: 'relay_ended'
      readonly timestamp: Timestamp
      readonly data: NotifiedSession &
        EndCause & {
          /** Null when the relay did not end out of a grace. */
          readonly cause: EndCause | null
          /** What the reason leaves open, where it is known. */
          readonly detail: SessionDetail | null
          readonly created_at: Timestamp
        }
    }
  | { readonly kind: 'stream_lost'; readonly timestamp: Timestamp; readonly data: StreamMoment }
  | {
      readonly kind: 'stream_recovered'
      readonly timestamp: Timestamp
      readonly data: StreamMoment & {
        readonly bitrate_kbps: number
        /** When the loss began, and how long it lasted. */
        readonly lost_at: Timestamp
        readonly away_seconds: number
      }
    }
  | {
      readonly kind: 'stream_weak'
      readonly timestamp: Timestamp
      readonly data: StreamMoment & { readonly bitrate_kbps: number }
    }
  | {
      readonly kind: 'payment_failed'
      readonly timestamp: Timestamp
      readonly data: {
        readonly subscriptions: readonly SubscriptionKind[]
        /** When access ends without a payment. Null when this failure ends none, as when another plan is paid for. */
        readonly ends_at: Timestamp | null
      }
    }
  | { readonly kind: 'plan_ending'; readonly timestamp: Timestamp; readonly data: { readonly ends_at: Timestamp } }
  | {
      readonly kind: 'relays_surplus'
      readonly timestamp: Timestamp
      readonly data: { readonly connection_ids: readonly string[]; readonly ends_at: Timestamp }
    }
  | {
      readonly kind: `usage_${UsageNoticePercent}`
      readonly timestamp: Timestamp
      readonly data: {
        readonly percent: UsageNoticePercent
        readonly consumed_seconds: number
        readonly included_seconds: number
        readonly cycle_start: Timestamp
        readonly cycle_end: Timestamp
      }
    }
  /** Sent at the request of the user, whatever is enabled. */
  | { readonly kind: 'test'; readonly timestamp: Timestamp; readonly data: Readonly<Record<string, never>> }

/** A notification that can be enabled. */
export type AccountNotification = Exclude<Notification, { readonly kind: 'test' }>

/**
 * An account gets no more notifications within an hour, on all channels together. A relay that fails again and again
 * reaches it.
 */
export const notificationsPerHourMax = 60

/** Of one kind about streams, beside that: a stream at its limit reaches it. */
export const streamNotificationsPerHourMax = 6

export const isAboutStream = (kind: NotificationKind): boolean => streamNoticeKinds.some((each) => each === kind)

/** Whether the user asked for this end. All other ends are notified. */
export const isEndByUser = ({ initiator }: EndCause, cause: EndCause | null): boolean =>
  initiator === 'user' || (cause?.initiator === 'user' && cause.reason === 'stop_requested')

/** Where a notification leads: a path of the site. */
export function notificationPath({ kind, data }: Notification): string {
  switch (kind) {
    case 'relay_contact_lost':
    case 'relay_replaced':
    case 'relay_ending_soon':
    case 'relays_surplus':
      return '/relays'
    case 'relay_ended':
      return `/history/${data.session_id}`
    case 'stream_lost':
    case 'stream_recovered':
    case 'stream_weak':
      return `/history/${data.session_id}?at=${data.at}`
    case 'payment_failed':
    case 'plan_ending':
      return '/account'
    case 'test':
      return '/account/notifications'
    default:
      return '/usage'
  }
}
