/** The whole surface on one page. Everything under `/api/v1` stands here and nowhere else. */

import type { Route } from './http/route.ts'
import * as accountActivity from './routes/account-activity.ts'
import * as accountChanges from './routes/account-changes.ts'
import * as accountExport from './routes/account-export.ts'
import * as accounts from './routes/accounts.ts'
import * as adminAccountErasure from './routes/admin-account-erasure.ts'
import * as adminBilling from './routes/admin-billing.ts'
import * as adminBillingEvent from './routes/admin-billing-event.ts'
import * as adminInstances from './routes/admin-instances.ts'
import * as adminJobs from './routes/admin-jobs.ts'
import * as adminOverview from './routes/admin-overview.ts'
import * as adminRegions from './routes/admin-regions.ts'
import * as adminSessions from './routes/admin-sessions.ts'
import * as adminSignIn from './routes/admin-sign-in.ts'
import * as adminSubscriptions from './routes/admin-subscriptions.ts'
import * as adminUsers from './routes/admin-users.ts'
import * as audit from './routes/audit.ts'
import * as authSessions from './routes/auth-sessions.ts'
import * as billing from './routes/billing.ts'
import * as billingPortal from './routes/billing-portal.ts'
import * as billingSubscriptions from './routes/billing-subscriptions.ts'
import * as billingWebhook from './routes/billing-webhook.ts'
import * as emailVerification from './routes/email-verification.ts'
import * as loginAttempts from './routes/login-attempts.ts'
import * as mailbox from './routes/mailbox.ts'
import * as merges from './routes/merges.ts'
import * as notificationEndpoint from './routes/notification-endpoint.ts'
import * as notifications from './routes/notifications.ts'
import * as oauth from './routes/oauth.ts'
import * as recovery from './routes/recovery.ts'
import * as regions from './routes/regions.ts'
import * as relay from './routes/relay.ts'
import * as relayHealth from './routes/relay-health.ts'
import * as relayHistory from './routes/relay-history.ts'
import * as relayPairing from './routes/relay-pairing.ts'
import * as relayWs from './routes/relay-ws.ts'
import * as sandbox from './routes/sandbox.ts'
import * as sessionSummary from './routes/session-summary.ts'
import * as streamTokens from './routes/stream-tokens.ts'
import * as usage from './routes/usage.ts'

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
