/** The whole surface on one page. Everything under `/api/v1` stands here and nowhere else. */

import type { Route } from './http/route.ts'
import * as adminBillingEvent from './routes/billing/admin-event.ts'
import * as adminBilling from './routes/billing/admin-events.ts'
import * as adminSubscriptions from './routes/billing/admin-subscriptions.ts'
import * as billing from './routes/billing/checkout.ts'
import * as billingPortal from './routes/billing/portal.ts'
import * as sandbox from './routes/billing/sandbox.ts'
import * as billingSubscriptions from './routes/billing/subscriptions.ts'
import * as usage from './routes/billing/usage.ts'
import * as billingWebhook from './routes/billing/webhook.ts'
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
import * as adminJobs from './routes/operations/admin-jobs.ts'
import * as adminOverview from './routes/operations/admin-overview.ts'
import * as adminSessions from './routes/relay/admin-sessions.ts'
import * as relayHealth from './routes/relay/health.ts'
import * as relayHistory from './routes/relay/history.ts'
import * as relay from './routes/relay/live-sessions.ts'
import * as relayPairing from './routes/relay/pairing.ts'
import * as relayWs from './routes/relay/ws.ts'

export const routes: readonly Route[] = [
  accounts.signup,
  accounts.login,
  recovery.forgot,
  recovery.preview,
  recovery.reset,
  emailVerification.preview,
  emailVerification.verify,
  emailVerification.resend,
  authSessions.refresh,
  authSessions.logout,
  authSessions.list,
  authSessions.revoke,
  authSessions.revokeOthers,
  accountChanges.show,
  accountChanges.changePassword,
  accountChanges.changeEmail,
  accountChanges.confirmEmail,
  accountChanges.scheduleDeletion,
  accountChanges.restore,
  accountExport.exportOwn,
  audit.own,
  accountActivity.list,
  loginAttempts.start,
  loginAttempts.poll,
  loginAttempts.read,
  loginAttempts.approve,
  loginAttempts.deny,
  oauth.providers,
  oauth.start,
  oauth.callback,
  oauth.unlink,
  merges.confirm,
  mailbox.list,

  sessionSummary.summary,
  usage.current,
  usage.days,
  streamTokens.regenerate,

  notifications.show,
  notifications.change,
  notifications.deliveries,
  notifications.previewUnsubscribe,
  notifications.unsubscribe,
  notificationEndpoint.save,
  notificationEndpoint.remove,
  notificationEndpoint.rotate,
  notificationEndpoint.test,

  relay.start,
  relay.active,
  relay.stop,
  relayHistory.list,
  relayHistory.show,
  relayHistory.bitrates,
  relayPairing.pair,
  relayWs.watch,
  relayHealth.report,
  regions.manifest,
  regions.capacity,

  billing.checkout,
  billingWebhook.webhook,
  billing.subscription,
  billingSubscriptions.cancel,
  billingPortal.open,
  sandbox.list,
  sandbox.act,

  adminSignIn.signIn,
  adminSignIn.signOut,
  adminUsers.findUser,
  adminUsers.showUser,
  adminUsers.grant,
  adminUsers.relayAccess,
  adminUsers.disable,
  accountExport.exportForOperator,
  adminAccountErasure.erase,
  audit.list,
  adminSessions.listSessions,
  adminSessions.showSession,
  adminSessions.disconnect,
  adminSessions.transition,
  adminBilling.listBillingEvents,
  adminBillingEvent.showBillingEvent,
  adminBilling.dismissBillingEvent,
  adminBilling.replayBillingEvent,
  adminSubscriptions.listUnusedBilledAccounts,
  adminSubscriptions.listOfAccount,
  adminSubscriptions.showSubscription,
  adminOverview.overview,
  adminJobs.listJobs,
  adminInstances.listInstances,
  adminRegions.listRegions,
  adminRegions.drain,
  adminRegions.resume,
]
