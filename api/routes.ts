/**
 * The whole surface on one page: method, path, caller and rate limit of everything under `/api/v1`. A declaration says
 * the rest. The compiler refuses a line whose declaration expects another caller or other path parameters.
 */

import * as adminBillingEvent from './routes/billing/admin-event.ts'
import * as adminBilling from './routes/billing/admin-events.ts'
import * as adminSubscriptions from './routes/billing/admin-subscriptions.ts'
import * as adminWithdrawals from './routes/billing/admin-withdrawals.ts'
import * as billing from './routes/billing/checkout.ts'
import * as billingPortal from './routes/billing/portal.ts'
import * as sandbox from './routes/billing/sandbox.ts'
import * as billingSubscriptions from './routes/billing/subscriptions.ts'
import * as usage from './routes/billing/usage.ts'
import * as billingWebhook from './routes/billing/webhook.ts'
import * as withdrawals from './routes/billing/withdrawals.ts'
import * as adminInstances from './routes/fleet/admin-instances.ts'
import * as adminRegions from './routes/fleet/admin-regions.ts'
import * as regions from './routes/fleet/regions.ts'
import * as accountActivity from './routes/identity/account-activity.ts'
import * as accountChanges from './routes/identity/account-changes.ts'
import * as accountExport from './routes/identity/account-export.ts'
import * as accounts from './routes/identity/accounts.ts'
import * as adminAccountErasure from './routes/identity/admin-account-erasure.ts'
import * as adminSignIn from './routes/identity/admin-sign-in.ts'
import * as adminUsers from './routes/identity/admin-users.ts'
import * as apps from './routes/identity/apps.ts'
import * as audit from './routes/identity/audit.ts'
import * as authSessions from './routes/identity/auth-sessions.ts'
import * as emailVerification from './routes/identity/email-verification.ts'
import * as loginAttempts from './routes/identity/login-attempts.ts'
import * as merges from './routes/identity/merges.ts'
import * as oauth from './routes/identity/oauth.ts'
import * as recovery from './routes/identity/recovery.ts'
import * as sessionSummary from './routes/identity/session-summary.ts'
import * as streamTokens from './routes/identity/stream-tokens.ts'
import * as notificationEndpoint from './routes/notifications/endpoint.ts'
import * as mailbox from './routes/notifications/mailbox.ts'
import * as notifications from './routes/notifications/settings.ts'
import * as adminIncidents from './routes/operations/admin-incidents.ts'
import * as adminJobs from './routes/operations/admin-jobs.ts'
import * as adminOverview from './routes/operations/admin-overview.ts'
import * as incidents from './routes/operations/incidents.ts'
import * as adminSessions from './routes/relay/admin-sessions.ts'
import * as connections from './routes/relay/connections.ts'
import * as relayHealth from './routes/relay/health.ts'
import * as relayHistory from './routes/relay/history.ts'
import * as ingests from './routes/relay/ingests.ts'
import * as liveSessions from './routes/relay/live-sessions.ts'
import * as relayPairing from './routes/relay/pairing.ts'
import * as playKeys from './routes/relay/play-keys.ts'
import * as shareLinks from './routes/relay/share-links.ts'
import * as slates from './routes/relay/slates.ts'
import * as streamRecord from './routes/relay/stream-record.ts'
import * as relayWs from './routes/relay/ws.ts'
import type { Route } from './routes/route.ts'
import {
  app,
  countedByHandler,
  del,
  get,
  maybeUser,
  none,
  operator,
  patch,
  post,
  put,
  relay,
  relayWatcher,
  uncounted,
  user,
  userOrApp,
  userOrAppCheckedByHandler,
} from './routes/surface.ts'

export const routes: readonly Route[] = [
  post('/auth/signup', none, 'signup', accounts.signup),
  post('/auth/login', none, 'login', accounts.login),
  post('/auth/password/forgot', none, 'forgot', recovery.forgot),
  post('/auth/password/reset/preview', none, uncounted, recovery.preview),
  post('/auth/password/reset', none, uncounted, recovery.reset),
  post('/auth/email/verify/preview', none, uncounted, emailVerification.preview),
  post('/auth/email/verify', none, uncounted, emailVerification.verify),
  post('/auth/email/resend', user, 'forgot', emailVerification.resend),
  post('/auth/refresh', none, uncounted, authSessions.refresh),
  post('/auth/logout', user, uncounted, authSessions.logout),
  get('/auth/sessions', user, uncounted, authSessions.list),
  del('/auth/sessions/{id}', user, uncounted, authSessions.revoke),
  post('/auth/sessions/revoke-others', user, uncounted, authSessions.revokeOthers),
  get('/auth/account', user, uncounted, accountChanges.show),
  post('/auth/password/change', user, 'login', accountChanges.changePassword),
  post('/auth/email/change', user, 'forgot', accountChanges.changeEmail),
  post('/auth/email/change/confirm', none, uncounted, accountChanges.confirmEmail),
  post('/auth/account/delete', user, 'login', accountChanges.scheduleDeletion),
  post('/auth/account/restore', user, uncounted, accountChanges.restore),
  get('/auth/account/export', user, 'account_export', accountExport.exportOwn),
  get('/auth/audit', user, uncounted, audit.own),
  get('/auth/activity', user, uncounted, accountActivity.list),
  post('/auth/plugin/login/start', none, 'plugin_start', loginAttempts.start),
  post('/auth/plugin/login/poll', none, 'plugin_poll', loginAttempts.poll),
  get('/auth/plugin/login/attempts/{id}', user, uncounted, loginAttempts.read),
  post('/auth/plugin/login/attempts/{id}/approve', user, uncounted, loginAttempts.approve),
  post('/auth/plugin/login/attempts/{id}/deny', user, uncounted, loginAttempts.deny),
  get('/auth/apps', user, uncounted, apps.list),
  del('/auth/apps/{client_id}', user, uncounted, apps.disconnect),
  get('/auth/apps/requests/{id}', user, uncounted, apps.showRequest),
  post('/auth/apps/requests/{id}/approve', user, uncounted, apps.approve),
  post('/auth/apps/requests/{id}/deny', user, uncounted, apps.deny),
  get('/auth/oauth/providers', none, uncounted, oauth.providers),
  post('/auth/oauth/{provider}/start', maybeUser, 'oauth_start', oauth.start),
  // Each call needs an authorization request, which was counted and is consumed once.
  post('/auth/oauth/{provider}/callback', none, uncounted, oauth.callback),
  del('/auth/oauth/{provider}', user, uncounted, oauth.unlink),
  post('/auth/merge/{merge_request_id}/confirm', none, countedByHandler('login'), merges.confirm),
  get('/mailbox', none, uncounted, mailbox.list),

  get('/auth/session', user, uncounted, sessionSummary.summary),
  get('/usage/current', user, 'usage', usage.current),
  get('/usage/days', user, 'usage', usage.days),
  post('/user/regenerate-tokens', user, uncounted, streamTokens.regenerate),

  get('/notifications', user, uncounted, notifications.show),
  post('/notifications/settings', user, 'notifications', notifications.change),
  get('/notifications/deliveries', user, uncounted, notifications.deliveries),
  post('/notifications/unsubscribe/preview', none, 'unsubscribe', notifications.previewUnsubscribe),
  post('/notifications/unsubscribe', none, 'unsubscribe', notifications.unsubscribe),
  post('/notifications/endpoint', user, 'notifications', notificationEndpoint.save),
  del('/notifications/endpoint', user, 'notifications', notificationEndpoint.remove),
  post('/notifications/endpoint/rotate', user, 'notifications', notificationEndpoint.rotate),
  post('/notifications/endpoint/test', user, 'notification_test', notificationEndpoint.test),

  // The transaction checks the sign-in and counts the request, because a replay of the same key does not count.
  post('/relay/start', userOrAppCheckedByHandler('relay:control'), countedByHandler('relay_start'), liveSessions.start),
  get('/relay/active', userOrApp('relay:read'), 'relay_active', liveSessions.active),
  post('/relay/stop', userOrApp('relay:control'), 'relay_stop', liveSessions.stop),
  get('/relay/sessions', userOrApp('relay:read'), 'relay_history', relayHistory.list),
  get('/relay/sessions/{id}', userOrApp('relay:read'), 'relay_history', relayHistory.show),
  get('/relay/sessions/{id}/record', userOrApp('relay:read'), 'relay_history', streamRecord.show),
  post('/relay/sessions/{id}/share', user, 'relay_history', shareLinks.create),
  del('/relay/sessions/{id}/share', user, 'relay_history', shareLinks.revoke),
  // Counted before the look-up, so that guesses of tokens count too.
  get('/shared/{token}', none, 'shared', shareLinks.show),
  get('/relay/connections', userOrApp('relay:read'), 'relay_history', connections.list),
  patch('/relay/connections/{name}', user, 'relay_history', slates.change),
  del('/relay/connections/{name}', user, 'relay_history', connections.remove),
  get('/relay/connections/{name}/slate', user, 'relay_history', slates.show),
  put('/relay/connections/{name}/slate', user, 'slate_upload', slates.put),
  del('/relay/connections/{name}/slate', user, 'relay_history', slates.remove),
  get('/relay/play-keys', user, 'relay_history', playKeys.list),
  post('/relay/play-keys', user, 'relay_history', playKeys.create),
  del('/relay/play-keys/{id}', user, 'relay_history', playKeys.remove),
  post('/relay/play-access', user, 'relay_history', playKeys.setAccess),
  get('/relay/bitrates', user, 'relay_history', relayHistory.bitrates),
  // Counted before the look-up, so that guesses of tokens count too.
  get('/relay/pair', none, 'pair', relayPairing.pair),
  get('/relay/ws', relayWatcher('relay:read'), 'relay_ws', relayWs.watch),
  post('/relay/health', relay, uncounted, relayHealth.report),
  get('/relay/slate/{digest}', relay, uncounted, slates.fetchByDigest),
  get('/relay/manifest', userOrApp('relay:read'), 'manifest', regions.manifest),
  get('/ingests', app('ingests:read'), 'ingests', ingests.list),
  get('/ingests/{id}/url', app('ingests:read'), 'ingests', ingests.resolve),
  get('/capacity/status', none, 'capacity', regions.capacity),
  get('/incidents', none, 'incidents', incidents.list),
  get('/incidents/feed', none, 'incidents', incidents.feed),

  post('/billing/checkout', user, 'checkout', billing.checkout),
  post('/billing/webhook', none, uncounted, billingWebhook.webhook),
  get('/billing/subscription', user, uncounted, billing.subscription),
  post('/billing/subscriptions/{subscription_id}/cancel', user, 'billing_manage', billingSubscriptions.cancel),
  get('/billing/withdrawals', user, uncounted, withdrawals.list),
  post('/billing/withdrawals', user, 'billing_manage', withdrawals.withdraw),
  post('/billing/portal', user, 'billing_manage', billingPortal.open),
  get('/billing/sandbox/subscriptions', user, uncounted, sandbox.list),
  post('/billing/sandbox/subscriptions/{subscription_id}/{outcome}', user, uncounted, sandbox.act),

  post('/admin/sign-in', operator, uncounted, adminSignIn.signIn),
  post('/admin/sign-out', operator, uncounted, adminSignIn.signOut),
  get('/admin/users', operator, uncounted, adminUsers.findUser),
  get('/admin/users/{id}', operator, uncounted, adminUsers.showUser),
  post('/admin/users/{id}/grant', operator, uncounted, adminUsers.grant),
  post('/admin/users/{id}/relay-access', operator, uncounted, adminUsers.relayAccess),
  post('/admin/users/{id}/disable', operator, uncounted, adminUsers.disable),
  get('/admin/users/{id}/export', operator, uncounted, accountExport.exportForOperator),
  post('/admin/users/{id}/erase', operator, uncounted, adminAccountErasure.erase),
  get('/admin/audit', operator, uncounted, audit.list),
  get('/admin/sessions', operator, uncounted, adminSessions.listSessions),
  get('/admin/sessions/{id}', operator, uncounted, adminSessions.showSession),
  post('/admin/sessions/{id}/disconnect', operator, uncounted, adminSessions.disconnect),
  post('/admin/sessions/{id}/transition', operator, uncounted, adminSessions.transition),
  get('/admin/billing/events', operator, uncounted, adminBilling.listBillingEvents),
  get('/admin/billing/events/{id}', operator, uncounted, adminBillingEvent.showBillingEvent),
  post('/admin/billing/events/{id}/dismiss', operator, uncounted, adminBilling.dismissBillingEvent),
  post('/admin/billing/events/{id}/replay', operator, uncounted, adminBilling.replayBillingEvent),
  get('/admin/billing/withdrawals', operator, uncounted, adminWithdrawals.listAll),
  get('/admin/billing/withdrawals/{id}', operator, uncounted, adminWithdrawals.showOne),
  post('/admin/billing/withdrawals/{id}/refund', operator, uncounted, adminWithdrawals.refund),
  post('/admin/billing/withdrawals/{id}/mark-refunded', operator, uncounted, adminWithdrawals.markAsRefunded),
  get('/admin/billing/accounts', operator, uncounted, adminSubscriptions.listUnusedBilledAccounts),
  get('/admin/users/{id}/subscriptions', operator, uncounted, adminSubscriptions.listOfAccount),
  get('/admin/users/{id}/subscription', operator, uncounted, adminSubscriptions.showSubscription),
  get('/admin/overview', operator, uncounted, adminOverview.overview),
  get('/admin/incidents', operator, uncounted, adminIncidents.listForOperators),
  post('/admin/incidents', operator, uncounted, adminIncidents.add),
  post('/admin/incidents/{id}/note', operator, uncounted, adminIncidents.note),
  post('/admin/incidents/{id}/end', operator, uncounted, adminIncidents.end),
  get('/admin/jobs', operator, uncounted, adminJobs.listJobs),
  get('/admin/instances', operator, uncounted, adminInstances.listInstances),
  get('/admin/regions', operator, uncounted, adminRegions.listRegions),
  post('/admin/regions/{region}/drain', operator, uncounted, adminRegions.drain),
  post('/admin/regions/{region}/resume', operator, uncounted, adminRegions.resume),
]
