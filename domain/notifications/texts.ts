/** Notifications in sentences, for mails and chats. */

import { describeRelayEnd, formatAway } from '../relay/end-texts.ts'
import type { Notification } from './kinds.ts'

/** How a channel shows the parts of a sentence that it may have to escape or format. */
export interface TextFormat {
  /** A name that the user or a plugin has chosen: any text. */
  readonly name: (text: string) => string
  /** An ISO 8601 time. */
  readonly time: (timestamp: string) => string
}

export interface NotificationText {
  readonly title: string
  readonly paragraphs: readonly string[]
}

export const plainFormat: TextFormat = {
  name: (text) => text,
  // 2026-11-22T14:05:33.120Z
  time: (timestamp) => `${timestamp.slice(0, 10)} ${timestamp.slice(11, 16)} UTC`,
}

export function describeNotification(notification: Notification, { name, time }: TextFormat): NotificationText {
  const { kind, data } = notification
  switch (kind) {
    case 'relay_contact_lost':
      return {
        title: `Lost contact with relay “${name(data.connection_id)}”`,
        paragraphs: [
          `The relay in the region ${name(data.region)} stopped reporting. Your stream may be interrupted while another relay takes over.`,
          `If neither succeeds, the session ends at ${time(data.grace_ends_at)}. There is nothing to do meanwhile: encoders connect again by themselves.`,
        ],
      }
    case 'relay_replaced':
      return {
        title: `Relay “${name(data.connection_id)}” was replaced`,
        paragraphs: [
          `The relay failed at ${time(data.failed_at)} and was replaced. Your stream was away for ${formatAway(data.away_seconds)}.`,
          'There is nothing to do: encoders and players connect again by themselves.',
        ],
      }
    case 'relay_ending_soon':
      return {
        title: `Relay “${name(data.connection_id)}” has run for a long time`,
        paragraphs: [
          `From ${time(data.idle_ends_at)} on it ends when no video has come in for ten minutes, and at ${time(data.ends_at)} even during a stream.`,
          'To avoid that, stop it and start it again at a good moment before. Your stream token stays the same; host and ports may change.',
        ],
      }
    case 'relay_ended':
      return {
        title: `Relay “${name(data.connection_id)}” ended`,
        paragraphs: [describeRelayEnd(data), 'You can start a new relay at any time while your plan includes one.'],
      }
    case 'stream_lost':
      return {
        title: `Stream of relay “${name(data.connection_id)}” lost`,
        paragraphs: [
          `No video has come in since ${time(data.at)}. The relay in the region ${name(data.region)} is running and waits for it.`,
          'Check the network and the battery of your phone or encoder. Most encoders connect again by themselves.',
        ],
      }
    case 'stream_recovered':
      return {
        title: `Stream of relay “${name(data.connection_id)}” recovered`,
        paragraphs: [
          `Video comes in again since ${time(data.at)}, at ${data.bitrate_kbps} kbps. It was away for ${formatAway(data.away_seconds)}.`,
        ],
      }
    case 'stream_weak':
      return {
        title: `Stream of relay “${name(data.connection_id)}” is weak`,
        paragraphs: [
          `Since ${time(data.at)} little video comes in. The bitrate was ${data.bitrate_kbps} kbps then.`,
          'Move to a place with a better network, or lower the bitrate of your encoder.',
        ],
      }
    case 'payment_failed':
      return describePaymentFailure(data, time)
    case 'plan_ending':
      return {
        title: 'Your plan is about to end',
        paragraphs: [
          `Your plan ends at ${time(data.ends_at)}. All of your relays stop then, also during a stream.`,
          'To keep it, renew your plan before that time.',
        ],
      }
    case 'relays_surplus':
      return {
        title: 'More relays are running than your plan includes',
        paragraphs: [
          `These relays end at ${time(data.ends_at)}: ${data.connection_ids.map((id) => `“${name(id)}”`).join(', ')}.`,
          'To keep them, add relays to your plan, or stop other relays before that time.',
        ],
      }
    case 'test':
      return { title: 'Test notification', paragraphs: ['Notifications from your account arrive here.'] }
    case 'usage_80':
    case 'usage_95':
    case 'usage_100':
      return {
        title: `${data.percent}% of your relay time is used`,
        paragraphs: [
          `You have used ${formatHours(data.consumed_seconds)} of the ${formatHours(data.included_seconds)} that your plan includes until ${time(data.cycle_end)}.`,
        ],
      }
  }
}

type DataOf<Kind extends Notification['kind']> = Extract<Notification, { readonly kind: Kind }>['data']

function describePaymentFailure(
  { subscriptions, ends_at: endsAt }: DataOf<'payment_failed'>,
  time: TextFormat['time'],
): NotificationText {
  const isPlan = subscriptions.includes('plan')
  return {
    title: isPlan ? 'The payment for your plan failed' : 'The payment for your add-ons failed',
    paragraphs: [
      endsAt === null
        ? 'Update your payment method, or cancel the subscription.'
        : `Update your payment method before ${time(endsAt)}. After that your ${isPlan ? 'plan ends and all of your relays stop' : 'add-ons end and the relays beyond your plan stop'}.`,
    ],
  }
}

const formatHours = (seconds: number): string => `${(Math.floor(seconds / 360) / 10).toLocaleString('en')} hours`
