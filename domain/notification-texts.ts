/** Notifications in sentences, for mails and chats. */
import type { EndCause, Notification } from './notifications.ts'
import type { ProvisioningDetail } from './relay-session.ts'

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
          `The relay in the region ${name(data.region)} stopped reporting. Your stream may be interrupted.`,
          `If contact is not restored, the relay ends at ${time(data.grace_ends_at)}. There is nothing to do meanwhile: encoders connect again by themselves.`,
        ],
      }
    case 'relay_ended':
      return {
        title: `Relay “${name(data.connection_id)}” ended`,
        paragraphs: [describeRelayEnd(data), 'You can start a new relay at any time while your plan includes one.'],
      }
    case 'payment_failed':
      return describePaymentFailure(data, time)
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
    default:
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

/** Why a relay that its user did not stop has ended. */
export function describeRelayEnd({
  reason,
  initiator,
  cause,
  detail,
}: EndCause & { readonly cause: EndCause | null; readonly detail: ProvisioningDetail | null }): string {
  const isLost = cause?.reason === 'health_lost'
  switch (reason) {
    case 'provision_failed':
      return ['It could not be started.', detail && provisioningTexts[detail]].filter(Boolean).join(' ')
    case 'provision_timeout':
      return 'It did not become ready in time.'
    case 'grace_elapsed':
      return isLost ? 'We lost contact with it, and it did not come back.' : 'Support stopped it.'
    case 'stop_requested':
      return initiator === 'system' ? 'It was stopped to make room for a newer relay of yours.' : 'Support stopped it.'
    default:
      if (initiator === 'operator') return 'Support disconnected it.'
      if (initiator === 'timer') return 'It reached the longest duration of a relay.'
      return isLost
        ? 'We lost contact with it, and its machine is gone.'
        : 'It was disconnected because your plan or your account changed.'
  }
}

const provisioningTexts: Readonly<Record<ProvisioningDetail, string>> = {
  capacity:
    'The provider had no free machine in its region. Try again in a few minutes, or start a relay in another region.',
  quota: 'The service has reached a limit of its account at the provider. Start a relay in another region meanwhile.',
  configuration: 'The region is not set up correctly. Start a relay in another region meanwhile.',
}
