/** The entries of an account's activity in sentences. */
import type { ActivityEntry } from '../api-replies.ts'
import { formatAddons } from './account-billing.tsx'
import { describeEnd } from './history-texts.ts'
import { kindTexts, type NotificationKind } from './notification-texts.ts'
import { displayNames, formatProviderNames, parseProvider } from './providers.tsx'

const actionTexts: Readonly<Record<string, string>> = {
  signed_up: 'Account created',
  signed_in: 'Signed in',
  signed_out: 'Signed out',
  signed_out_elsewhere: 'Signed out everywhere else',
  sign_in_failed: 'Sign-in failed: wrong password',
  sign_in_unverified: 'Sign-in failed: email not verified',
  signup_refused: 'Someone tried to create an account with your email address',
  email_verified: 'Email verified',
  password_reset_requested: 'Password reset requested',
  password_reset: 'Password changed with a reset link',
  password_changed: 'Password changed',
  password_check_failed: 'A change was refused: wrong password',
  email_change_requested: 'Change of the email address requested',
  email_changed: 'Email address changed',
  account_deletion_scheduled: 'Deletion of the account scheduled',
  account_exported: 'Data of the account downloaded',
  account_restored: 'Deletion of the account withdrawn',
  oauth_linked: 'Account linked',
  oauth_unlinked: 'Account unlinked',
  account_reclaimed: 'Account recovered by the owner of its email address',
  merge_requested: 'Account linking requested',
  merge_refused: 'Account linking failed: ownership not confirmed',
  merge_confirmed: 'Account linked after confirming ownership',
  chat_disconnected: 'Chat disconnected',
  plugin_login_approved: 'Streaming software approved',
  plugin_login_denied: 'Streaming software denied',
  app_connected: 'App connected',
  app_signed_out: 'App signed out',
  app_disconnected: 'App disconnected',
  plan_granted: 'Plan granted',
  subscription_cancelled: 'Subscription cancelled with the billing provider',
  contract_withdrawn: 'Withdrawn from a contract',
  withdrawal_refunded: 'Withdrawal refunded',
  withdrawal_refund_failed: 'Refund of a withdrawal failed',
  plan_billed_twice: 'Billed for a second plan',
  billing_event_replayed: 'Payment notification processed again',
  billing_event_dismissed: 'Payment notification dismissed',
  relay_access_disabled: 'Relays disabled',
  relay_access_enabled: 'Relays enabled',
  account_disabled: 'Account disabled',
  account_enabled: 'Account enabled',
  notification_endpoint_saved: 'Webhook or Discord channel for notifications saved',
  notification_endpoint_removed: 'Webhook or Discord channel for notifications removed',
  notification_endpoint_disabled: 'Webhook or Discord channel for notifications turned off, because it failed',
  notification_secret_replaced: 'Signing secret of the webhook replaced',
  play_key_created: 'Play key created',
  play_key_deleted: 'Play key deleted',
  share_link_created: 'Relay shared by a link',
  share_link_revoked: 'Share link of a relay ended',
  play_with_keys_only_enabled: 'Players need a play key from now on',
  play_with_keys_only_disabled: 'The stream token admits players again',
  relay_started: 'Relay started',
  relay_stopped: 'Relay ended',
  session_disconnected: 'Relay disconnected',
  session_transition_requested: 'Relay state correction requested',
  session_transition_refused: 'Relay state correction refused',
  session_transition_withdrawn: 'Relay state correction withdrawn',
  session_transitioned: 'Relay state corrected',
}

/** Actions without a text, from a newer API, are shown by their name. */
export function describeAction({ action, detail }: ActivityEntry): string {
  if (action === 'plan_changed') return `Plan changed: ${describePlan(detail)}`
  if (action === 'plan_granted' && detail.plan_tier === 'free') return 'Granted plan removed'
  if (action === 'addons_billed_without_plan')
    return `Plan ended, but ${formatAddons(Number(detail.addons))} still billed`
  if (action === 'usage_notice') return `${detail.percent}% of the relay time of the cycle used`
  if (action === 'password_reset' && detail.unlinked)
    return `Password changed, unlinked: ${formatProviderNames(String(detail.unlinked))}`
  if (action === 'notification_enabled') return `Notification turned on: ${describeNotification(detail)}`
  if (action === 'notification_disabled') return `Notification turned off: ${describeNotification(detail)}`
  if (action === 'notification_delay_changed')
    return `Delay of notifications about streams: ${detail.stream_delay_seconds} s`
  const text = actionTexts[action] ?? action.replaceAll('_', ' ')
  const provider = parseProvider(String(detail.provider ?? detail.method))
  return provider ? `${text}: ${displayNames[provider]}` : text
}

const planStatusTexts: Readonly<Record<string, string>> = { past_due: ', payment failed', cancelled: ', cancelled' }

function describePlan({ plan_tier: tier, plan_status: status, addons }: ActivityEntry['detail']): string {
  const addonsText = Number(addons) > 0 ? `, ${formatAddons(Number(addons))}` : ''
  return `${tier === 'paid' ? 'paid plan' : 'free plan'}${planStatusTexts[String(status)] ?? ''}${addonsText}`
}

/** `“Relay ended” by email`. */
function describeNotification({ kind, channel }: ActivityEntry['detail']): string {
  const name = kindTexts[kind as NotificationKind]?.name ?? String(kind).replaceAll('_', ' ')
  return `“${name}” ${channel === 'email' ? 'by email' : 'at your webhook or Discord channel'}`
}

/** Why it happened, in a sentence; undefined where the action says all. */
export function describeReason({ action, detail }: ActivityEntry): string | undefined {
  if (action === 'relay_stopped') return describeRelayEnd(detail)
  if (action === 'signed_out') return signOutTexts[String(detail.why)]
  if (action === 'app_signed_out' && detail.why === 'token_reuse') return signOutTexts.token_reuse
  if (action === 'email_changed' && detail.former) return `It was ${detail.former} before.`
  // Its own ones.
  if (action === 'app_disconnected') return undefined
  const ended = Number(detail.sign_ins_ended)
  if (ended > 0) return ended === 1 ? 'One other sign-in was ended.' : `${ended} other sign-ins were ended.`
  return undefined
}

const signOutTexts: Readonly<Record<string, string>> = {
  revoked: 'Ended from the list of sign-ins.',
  token_reuse: 'Ended for safety: an old token of the sign-in was used again.',
}

/** The connection and the region of a relay. */
export function describePlace({ action, detail }: ActivityEntry): string | undefined {
  const isRelay = action === 'relay_started' || action === 'relay_stopped'
  return isRelay ? `${detail.connection_id} · ${detail.region}` : undefined
}

type End = Parameters<typeof describeEnd>[0]

function describeRelayEnd(detail: ActivityEntry['detail']): string {
  const end = {
    state: 'stopped',
    reason: detail.reason,
    detail: detail.provisioning_detail,
    initiator: detail.initiator,
    cause: { reason: detail.cause_reason, initiator: detail.cause_initiator },
  }
  return describeEnd(end as End)
}
