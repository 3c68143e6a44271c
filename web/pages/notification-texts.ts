/** The kinds of notifications and where they go, in words. */
import type { Reply } from '../../client/reply.ts'

export type NotificationOverview = Reply<'get', '/notifications'>
export type NotificationEndpoint = NonNullable<NotificationOverview['endpoint']>
export type NotificationDelivery = Reply<'get', '/notifications/deliveries'>['deliveries'][number]
export type NotificationKind = NotificationOverview['kinds'][number]['kind']

export const kindTexts: Readonly<Record<NotificationKind, { readonly name: string; readonly description: string }>> = {
  relay_contact_lost: {
    name: 'Contact with a relay lost',
    description: 'A running relay stops reporting. Says when it ends unless contact is restored.',
  },
  relay_replaced: {
    name: 'Relay replaced',
    description: 'A running relay failed and another one has taken over. Says for how long your stream was away.',
  },
  relay_ending_soon: {
    name: 'Relay about to end after a long time',
    description: 'An hour before a relay that has run for long may be stopped. Says when.',
  },
  relay_ended: { name: 'Relay ended', description: 'A relay ends without you stopping it. Says why.' },
  stream_lost: {
    name: 'Stream lost',
    description: 'No video comes in while the relay is running. Says since when.',
  },
  stream_recovered: {
    name: 'Stream recovered',
    description: 'Video comes in again, after a message that it was lost. Says for how long it was away.',
  },
  stream_weak: { name: 'Stream weak', description: 'Little video comes in. Says how much.' },
  payment_failed: { name: 'Payment failed', description: 'A payment fails. Says until when you can settle it.' },
  plan_ending: { name: 'Plan about to end', description: 'Three days before your plan ends, once for each end.' },
  relays_surplus: {
    name: 'Relays about to end',
    description: 'More relays are running than your plan includes. Says which end, and when.',
  },
  usage_80: { name: '80% of relay time used', description: 'Once in each billing cycle.' },
  usage_95: { name: '95% of relay time used', description: 'Once in each billing cycle.' },
  usage_100: { name: 'All relay time used', description: 'Once in each billing cycle.' },
}

/** Kinds of a newer API have no text, and are not shown. */
export const hasText = ({ kind }: { readonly kind: string }): boolean => kind in kindTexts || kind === 'test'

export const endpointTypeTexts: Readonly<Record<NotificationEndpoint['type'], string>> = {
  webhook: 'Webhook',
  discord: 'Discord',
}

export const channelTexts: Readonly<Record<NotificationDelivery['channel'], string>> = {
  email: 'Email',
  ...endpointTypeTexts,
}
