/** Notifications and the webhook that they are sent to. */
import type { OperationTexts } from '../operation-text.ts'

export const notificationTexts: OperationTexts = {
  'GET /notifications': {
    id: 'getNotificationSettings',
    description: 'What the account is notified of and on which channels, and its webhook without secrets.',
  },
  'POST /notifications/settings': {
    id: 'changeNotificationSettings',
    description:
      'Enables or disables kinds of notifications on a channel. All of them or none are changed. Safe to repeat.',
  },
  'GET /notifications/deliveries': {
    id: 'listNotificationDeliveries',
    description: 'The last notifications of the account and how their delivery went, newest first.',
  },
  'POST /notifications/unsubscribe/preview': {
    id: 'previewUnsubscribe',
    description: 'Shows which notification the token of a link turns off. Changes nothing.',
  },
  'POST /notifications/unsubscribe': {
    id: 'unsubscribe',
    description: 'Turns one notification off with the token of a link, without a sign-in. Safe to repeat.',
  },
  'POST /notifications/endpoint': {
    id: 'setNotificationEndpoint',
    description:
      'Sets the URL that notifications are sent to, in place of the one before. Private addresses are refused. The reply contains the signing secret, which is shown only once: requests to a webhook are signed as Standard Webhooks 1.0 specifies (`webhook-id`, `webhook-timestamp`, `webhook-signature`).',
  },
  'DELETE /notifications/endpoint': {
    id: 'removeNotificationEndpoint',
    description: 'Removes the URL, and with it the notifications on this channel. Safe to repeat.',
  },
  'POST /notifications/endpoint/rotate': {
    id: 'rotateSigningSecret',
    description: 'Replaces the signing secret of the webhook at once. The one before signs nothing any more.',
  },
  'POST /notifications/endpoint/test': {
    id: 'sendTestNotification',
    description: 'Sends a test notification to the URL. Its result is among the deliveries.',
  },
}
