/** The whole surface on one page. Everything under `/api/v1` stands here and nowhere else. */
import * as accounts from './accounts.ts'
import * as adminBilling from './admin-billing.ts'
import * as adminInstances from './admin-instances.ts'
import * as adminJobs from './admin-jobs.ts'
import * as adminSessions from './admin-sessions.ts'
import * as adminSubscriptions from './admin-subscriptions.ts'
import * as adminUsers from './admin-users.ts'
import * as audit from './audit.ts'
import * as authSessions from './auth-sessions.ts'
import * as billing from './billing.ts'
import * as billingPortal from './billing-portal.ts'
import * as billingSubscriptions from './billing-subscriptions.ts'
import * as billingWebhook from './billing-webhook.ts'
import * as emailVerification from './email-verification.ts'
import * as loginAttempts from './login-attempts.ts'
import * as merges from './merges.ts'
import * as oauth from './oauth.ts'
import * as recovery from './recovery.ts'
import * as regions from './regions.ts'
import * as relay from './relay.ts'
import * as relayHealth from './relay-health.ts'
import type { Route } from './route.ts'
import * as sandbox from './sandbox.ts'
import * as sessionSummary from './session-summary.ts'
import * as streamTokens from './stream-tokens.ts'
import * as usage from './usage.ts'

export const routes: readonly Route[] = [
  accounts.signup,
  accounts.login,
  recovery.forgot,
  recovery.preview,
  recovery.reset,
  emailVerification.verify,
  emailVerification.resend,
  authSessions.refresh,
  authSessions.logout,
  authSessions.list,
  authSessions.revoke,
  audit.own,
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

  sessionSummary.summary,
  usage.current,
  streamTokens.regenerate,

  relay.start,
  relay.active,
  relay.stop,
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

  adminUsers.findUser,
  adminUsers.showUser,
  adminUsers.grant,
  adminUsers.relayAccess,
  adminUsers.disable,
  audit.list,
  adminSessions.listSessions,
  adminSessions.showSession,
  adminSessions.disconnect,
  adminSessions.transition,
  adminBilling.listBillingEvents,
  adminBilling.dismissBillingEvent,
  adminBilling.replayBillingEvent,
  adminSubscriptions.listBilledForNothing,
  adminSubscriptions.listOfAccount,
  adminJobs.listJobs,
  adminInstances.listInstances,
]
